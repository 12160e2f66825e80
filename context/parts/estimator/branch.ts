import { fromLeaf } from "../../../extension/branch-view.ts";
import type { AgentMessage, SessionEntry, SessionReader } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** A response on the branch that reports the tokens of its request. */
export interface Reported {
  readonly entryId: string;
  readonly message: AgentMessage;
  /** `provider/id`. */
  readonly model: string;
  /** Tokens of the request: cached or not. */
  readonly input: number;
  /** Tokens of the response. `undefined`: some of them are reasoning, which later requests may leave out. */
  readonly output: number | undefined;
}

/** The branch after the newest response with reported tokens. */
export interface Tail {
  /** `undefined`: none, or a compaction followed it. */
  readonly reported: Reported | undefined;
  readonly added: readonly AgentMessage[];
  /** Later edits of entries before the response, of the response, and of added entries. */
  readonly edits: readonly { readonly was: AgentMessage; readonly is: AgentMessage | undefined }[];
}

const noStop: ReadonlySet<unknown> = new Set(["error", "aborted", "pending"]);

/** The report of a response. `undefined`: failed, aborted, or without tokens. */
export function reportOf(message: AgentMessage): Omit<Reported, "entryId"> | undefined {
  if (message.role !== "assistant" || noStop.has(message.stopReason)) return undefined;
  const usage: unknown = message.usage;
  if (!isRecord(usage)) return undefined;
  const input = tokens(usage["input"]) + tokens(usage["cacheRead"]) + tokens(usage["cacheWrite"]);
  if (input <= 0) return undefined;
  const hasReasoning = !Array.isArray(message.content) || message.content.some((block: unknown) => isReasoning(block));
  const output = tokens(usage["output"]);
  return {
    message,
    model: `${message.provider}/${message.model}`,
    input,
    output: hasReasoning || output === 0 ? undefined : output,
  };
}

/** The message that an entry adds to the context, before edits. */
function messageOfEntry(entry: SessionEntry): AgentMessage | undefined {
  switch (entry.type) {
    case "message":
      return entry.message;
    case "custom_message":
      return { role: "custom", content: entry.content, customType: entry.customType, display: false, timestamp: 0 };
    case "branch_summary":
      return { role: "branchSummary", summary: entry.summary, fromId: entry.fromId, timestamp: 0 };
    default:
      return undefined;
  }
}

/** Reads the branch backwards to the newest report. */
export function tailOf(session: SessionReader): Tail {
  const added: AgentMessage[] = [];
  const edits = new Map<string, Replacement>();
  for (const entry of fromLeaf(session)) {
    if (entry.type === "compaction") break;
    if (entry.type === "context_edit" && !edits.has(entry.targetId)) edits.set(entry.targetId, entry.replacement);
    const message = messageOfEntry(entry);
    const report = message === undefined ? undefined : reportOf(message);
    if (report !== undefined) {
      return { reported: { entryId: entry.id, ...report }, added: added.reverse(), edits: editsOf(edits, session) };
    }
    if (message !== undefined && message.role !== "system") added.push(message);
  }
  return { reported: undefined, added: [], edits: [] };
}

/** Pairs of consecutive reports with the messages between them, newest first. Stops at a change of the context. */
export function* reportsOf(
  session: SessionReader,
): Generator<{ readonly earlier: Reported; readonly later: Reported; readonly between: readonly AgentMessage[] }> {
  let later: Reported | undefined;
  let between: AgentMessage[] = [];
  for (const entry of fromLeaf(session)) {
    if (entry.type === "compaction" || entry.type === "context_edit") return;
    if (entry.type === "message" && entry.message.role === "system") return;
    const message = messageOfEntry(entry);
    if (message === undefined) continue;
    const report = reportOf(message);
    if (report !== undefined) {
      const earlier = { entryId: entry.id, ...report };
      if (later !== undefined && earlier.model === later.model) yield { earlier, later, between };
      later = earlier;
      between = [];
    } else between.push(message);
  }
}

type Replacement = { readonly content: unknown } | null;

function editsOf(edits: ReadonlyMap<string, Replacement>, session: SessionReader): Tail["edits"] {
  return [...edits].flatMap(([targetId, replacement]) => {
    const entry = session.getEntry(targetId);
    const was = entry === undefined ? undefined : messageOfEntry(entry);
    if (entry === undefined || was === undefined) return [];
    return [{ was, is: replacement === null ? undefined : withContent(entry, replacement.content) }];
  });
}

function withContent(entry: SessionEntry, content: unknown): AgentMessage | undefined {
  const message = messageOfEntry(entry);
  return message === undefined ? undefined : ({ ...message, content } as AgentMessage);
}

function isReasoning(block: unknown): boolean {
  return isRecord(block) && block["type"] !== "text" && block["type"] !== "toolCall";
}

function tokens(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}
