import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { deliveryIdOf } from "../../../extension/delivery/marker.ts";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { withoutCarriers } from "../../../extension/stages/carrier.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { tailOf } from "../estimator/branch.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import { heldMessages } from "../structured/held-context.ts";

/** What requests have in place of messages. */
export interface ShownBlocks {
  /** The active block that replaces the message of an entry. */
  over(entryId: string): unknown;
  readonly active: readonly { readonly tokensAfter: number }[];
}

export interface WindowSources {
  readonly estimator: Pick<TokenEstimator, "text" | "message"> & Partial<Pick<TokenEstimator, "context">>;
  /** Undefined: requests have no blocks. */
  readonly blocks?: (ctx: ExtensionContext) => ShownBlocks | undefined;
  /** Tokens of the next request with its blocks. Undefined: not known. */
  readonly pruned?: (ctx: ExtensionContext) => number | undefined;
}

interface WindowMessage {
  readonly entryId: string;
  readonly tool?: string;
  /** Unix milliseconds. */
  readonly at?: number;
}

/** A part of the next request. */
interface WindowPart {
  /** As in `window.byKind` of `optimisation/inspect`. */
  readonly kind: string;
  /** The kind of the whole message, where the part is only its images or thinking. */
  readonly of: string;
  readonly tokens: number;
  /** The message that it is a part of. */
  readonly message?: WindowMessage;
}

export interface WindowContent {
  /** Tokens of the next request: as reported for the last one with its answer, and estimates of what has changed since. */
  readonly used: number;
  /** Tokens by kind, which add up to {@link used}. */
  byKind(nameOf?: (part: WindowPart) => string): Record<string, number>;
  /** The largest messages first. */
  largest(count: number): (WindowMessage & { kind: string; tokens: number })[];
}

/**
 * The content of the next request. Providers report only how many tokens a request has in all, so its parts are estimates,
 * multiplied by one factor so that they add up to what was reported.
 */
export function windowContent(
  host: Pick<HostPort, "pi" | "memory">,
  { estimator, blocks, pruned }: WindowSources,
  ctx: ExtensionContext,
): WindowContent {
  const parts = partsOf(host, estimator, blocks?.(ctx), ctx);
  const sum = sumOf(parts.map(({ tokens }) => tokens));
  const { reported } = tailOf(ctx.sessionManager);
  const known = reported && (pruned?.(ctx) ?? estimator.context?.(ctx));
  // What has left the context since the report is estimated: subtracting it can leave too little.
  const isKnown = reported !== undefined && known !== undefined && known >= Math.min(reported.input, sum / 2);
  const used = Math.ceil(isKnown ? known : sum);
  const scaled = parts.map((part) => ({ ...part, tokens: sum === 0 ? 0 : (part.tokens * used) / sum }));
  return {
    used,
    byKind: (nameOf = ({ kind }) => kind) => {
      const sums = new Map<string, number>();
      for (const part of scaled) sums.set(nameOf(part), (sums.get(nameOf(part)) ?? 0) + part.tokens);
      return Object.fromEntries(wholes(sums, used));
    },
    largest: (count) => {
      const sizes = new Map<string, WindowMessage & { kind: string; tokens: number }>();
      for (const { message, of: kind, tokens } of scaled) {
        if (message === undefined) continue;
        const known = sizes.get(message.entryId) ?? { ...message, kind, tokens: 0 };
        sizes.set(message.entryId, { ...known, tokens: known.tokens + tokens });
      }
      const sorted = [...sizes.values()].sort((a, b) => b.tokens - a.tokens).slice(0, count);
      return sorted.map((one) => ({ ...one, tokens: Math.round(one.tokens) }));
    },
  };
}

function partsOf(
  host: Pick<HostPort, "pi" | "memory">,
  estimator: WindowSources["estimator"],
  blocks: ShownBlocks | undefined,
  ctx: ExtensionContext,
): readonly WindowPart[] {
  const parts: WindowPart[] = [];
  const add = (kind: string, tokens: number): void => void parts.push({ kind, of: kind, tokens });
  add("system", estimator.text(ctx.getSystemPrompt()));
  add("tools", estimator.text(activeTools(host)));
  for (const message of heldMessages(host.memory, ctx)) add("context", estimator.message(message));
  for (const { sourceEntry, messages } of ctx.sessionManager.buildSessionProjection().entries) {
    if (blocks?.over(sourceEntry.id) !== undefined) continue;
    for (const message of withoutCarriers(messages)) {
      // The prompt is counted above.
      if (message.role !== "system") parts.push(...messageParts(message, sourceEntry.id, estimator));
    }
  }
  for (const { tokensAfter } of blocks?.active ?? []) add("blocks", tokensAfter);
  return parts;
}

const kinds: ReadonlyMap<string, string> = new Map([
  ["user", "user"],
  ["assistant", "assistant"],
  ["toolResult", "toolResults"],
  ["bashExecution", "bash"],
  ["compactionSummary", "summaries"],
  ["branchSummary", "summaries"],
]);

/** The parts of a message: its images, its thinking, and the rest. */
function messageParts(
  message: AgentMessage,
  entryId: string,
  estimator: WindowSources["estimator"],
): readonly WindowPart[] {
  const of = deliveryIdOf(message) !== undefined ? "pushes" : (kinds.get(message.role) ?? "custom");
  const from: WindowMessage = {
    entryId,
    ...(message.role === "toolResult" ? { tool: String(message.toolName).slice(0, 256).toWellFormed() } : {}),
    ...(Number.isSafeInteger(message.timestamp) && message.timestamp > 0 ? { at: message.timestamp } : {}),
  };
  const parts: WindowPart[] = [];
  let rest = message;
  let left = estimator.message(message);
  for (const [type, kind] of aside) {
    const without = withoutBlocks(rest, type);
    if (without === rest) continue;
    const tokens = estimator.message(without);
    parts.push({ kind, of, tokens: Math.max(0, left - tokens), message: from });
    [rest, left] = [without, tokens];
  }
  return [{ kind: of, of, tokens: left, message: from }, ...parts];
}

/** Kinds of content that are counted apart from their message. */
const aside = [
  ["image", "images"],
  ["thinking", "thinking"],
] as const;

/** Returns the same message if it has no such block. */
function withoutBlocks(message: AgentMessage, type: string): AgentMessage {
  const content: unknown = "content" in message ? message.content : undefined;
  const isOf = (block: unknown): boolean => isRecord(block) && block["type"] === type;
  if (!Array.isArray(content) || !content.some(isOf)) return message;
  return { ...message, content: content.filter((block) => !isOf(block)) } as AgentMessage;
}

/** The definitions of the active tools, approximately as services receive them. */
function activeTools({ pi }: Pick<HostPort, "pi">): string {
  const active = new Set(pi.getActiveTools());
  const tools = pi.getAllTools().filter(({ name }) => active.has(name));
  return tools.map(({ name, description, parameters }) => JSON.stringify({ name, description, parameters })).join("\n");
}

/** Whole numbers that add up to a whole sum: those with the largest fractions are rounded up. */
function wholes(sums: ReadonlyMap<string, number>, sum: number): ReadonlyMap<string, number> {
  const floors = new Map([...sums].map(([name, value]) => [name, Math.floor(value)]));
  const byFraction = [...sums].sort(([, a], [, b]) => (b % 1) - (a % 1));
  const missing = sum - sumOf([...floors.values()]);
  for (const [name] of byFraction.slice(0, Math.max(0, missing))) floors.set(name, (floors.get(name) ?? 0) + 1);
  return floors;
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
