import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { mayHoldTag, withoutTags } from "../../extension/message-tag.ts";
import type { AgentMessage } from "../../extension/pi-types.ts";
import { isRecord } from "../../protocol/objects.ts";
import { RECALL_TOOL } from "../../protocol/optimisation/config.ts";
import { COMPRESS_TOOL } from "../../protocol/pruning/config.ts";
import { blockNumberOf } from "./block-id.ts";
import type { GivenMessageIds } from "./ids.ts";
import type { PruningServices } from "./pruning-services.ts";

type Host = Pick<PruningServices, "on" | "pipeline" | "off" | "blocks"> & { readonly ids: GivenMessageIds };
type Assistant = Extract<AgentMessage, { role: "assistant" }>;
type Block = Assistant["content"][number];
type Call = Extract<Block, { type: "toolCall" }>;
type IsIssued = (id: string) => boolean;

const maxDepth = 16;
/** Arguments that are not stripped, because their tools read ids from them. */
const idArguments: Readonly<Record<string, ReadonlySet<string>>> = {
  // `ranges` can be a JSON text with ids.
  [COMPRESS_TOOL]: new Set(["startId", "endId", "ranges"]),
  [RECALL_TOOL]: new Set(["id"]),
  // Must match the file exactly.
  edit: new Set(["oldText"]),
};
const nothing: ReadonlySet<string> = new Set();
/** Replaces a text that contained only tags, if services require a text. */
const silence = "…";

/** Removes tags that the model repeated before its message is stored and its calls run. */
export function addStrip(host: Host): void {
  const signed = new Set<string>();
  /** Whether this session has assigned an id to a message or block. */
  const issued = (ctx: ExtensionContext): IsIssued => {
    const next = blockNumberOf(host.blocks.nextId(ctx)) ?? 1;
    return (id) => host.ids.entryOf(id, ctx) !== undefined || (blockNumberOf(id) ?? next) < next;
  };
  host.pipeline.use(
    "message_end",
    "strip",
    (message, ctx) => {
      if (message.role !== "assistant" || host.off(ctx) !== undefined) return undefined;
      for (const block of message.content) if (isSigned(block) && signed.size < 1_000) signed.add(block.id);
      const { made, removed } = stripped(message, issued(ctx));
      if (removed > 0) host.ids.removed(removed);
      return made;
    },
    "tags",
  );
  // Truncated and malformed calls never run.
  host.on("tags", "agent_settled", () => signed.clear());
  // A signed call is stored unchanged and runs without the tags.
  host.on("tags", "tool_call", ({ toolCallId, toolName, input }, ctx) => {
    if (!signed.delete(toolCallId) || host.off(ctx) !== undefined) return;
    const { made } = strippedArguments(toolName, input, issued(ctx));
    for (const [key, value] of Object.entries(made)) {
      Object.defineProperty(input, key, { value, enumerable: true, configurable: true, writable: true });
    }
  });
}

/** Returns a message without repeated tags, or the same message if it has none. */
export function stripped(
  message: Assistant,
  isIssued: IsIssued,
): { readonly made: Assistant; readonly removed: number } {
  let removed = 0;
  const counted: IsIssued = (id) => {
    const isOurs = isIssued(id);
    if (isOurs) removed += 1;
    return isOurs;
  };
  const cleaned = message.content.map((block) => {
    if (block.type === "toolCall") return isSigned(block) ? block : withArguments(block, counted);
    if (block.type !== "text" || !mayHoldTag(block.text)) return block;
    const text = withoutTags(block.text, counted);
    return text === block.text ? block : { ...block, text };
  });
  if (removed === 0) return { made: message, removed };
  // Services refuse blank texts.
  const isGone = (block: Block, at: number): boolean => block !== message.content[at] && isBlank(block);
  const thought = cleaned.findLastIndex(({ type }) => type === "thinking");
  const isSilent = thought !== -1 && cleaned.slice(thought + 1).every(isBlank);
  // They also refuse thoughts without a following block; such an answer would fail each later request.
  const kept = isSilent ? cleaned.findLastIndex((block, at) => at > thought && isGone(block, at)) : -1;
  const content = cleaned.flatMap((block, at): Block[] => {
    if (at === kept && block.type === "text") return [{ ...block, text: silence }];
    return isGone(block, at) ? [] : [block];
  });
  return { made: { ...message, content: content.length > 0 ? content : [{ type: "text", text: "" }] }, removed };
}

function isBlank(block: Block): boolean {
  return block.type === "text" && block.text.trim() === "";
}

/** The arguments of a call without repeated tags. */
export function strippedArguments(
  tool: string,
  given: Readonly<Record<string, unknown>>,
  isIssued: IsIssued,
): { readonly made: Readonly<Record<string, unknown>> } {
  const kept = Object.hasOwn(idArguments, tool) ? (idArguments[tool] ?? nothing) : nothing;
  const without = (value: unknown, depth: number, isKept: boolean): unknown => {
    if (typeof value === "string") return isKept ? value : withoutTags(value, isIssued);
    if (depth >= maxDepth || typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) {
      const made = value.map((element) => without(element, depth + 1, isKept));
      return made.some((element, at) => element !== value[at]) ? made : value;
    }
    const entries = Object.entries(value);
    const made = entries.map(([key, inner]) => [key, without(inner, depth + 1, kept.has(key))] as const);
    return made.some(([, inner], at) => inner !== entries[at]?.[1]) ? Object.fromEntries(made) : value;
  };
  const made = without(given, 0, false);
  return { made: isRecord(made) ? made : given };
}

function withArguments(call: Call, isIssued: IsIssued): Call {
  const { made } = strippedArguments(call.name, call.arguments, isIssued);
  return made === call.arguments ? call : { ...call, arguments: made as Call["arguments"] };
}

function isSigned(block: Block): block is Call {
  return block.type === "toolCall" && block.thoughtSignature !== undefined && block.thoughtSignature !== "";
}
