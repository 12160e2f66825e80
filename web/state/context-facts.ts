import type { ModelChoice } from "./choices.ts";
import type { CostUsage } from "./request-facts.ts";
import type { Block, Inspected, Pruned } from "./session-context.ts";

/** The kinds of content that pi counts, in the order in which requests have them. */
export const contextKinds = [
  "system",
  "tools",
  "context",
  "summaries",
  "blocks",
  "user",
  "images",
  "pushes",
  "assistant",
  "thinking",
  "toolResults",
  "bash",
  "custom",
] as const;
export type ContextKind = (typeof contextKinds)[number];

export interface ContextPart {
  readonly kind: ContextKind;
  readonly tokens: number;
}

/** What fills the window, in the order of {@link contextKinds}. Kinds of a newer pi are counted as `custom`. */
export function partsOf({ byKind }: Inspected["window"]): readonly ContextPart[] {
  const known: ReadonlySet<string> = new Set(contextKinds);
  const others = Object.entries(byKind).filter(([kind]) => !known.has(kind));
  return contextKinds
    .map((kind) => {
      const own = byKind[kind] ?? 0;
      return { kind, tokens: kind === "custom" ? others.reduce((sum, [, tokens]) => sum + tokens, own) : own };
    })
    .filter(({ tokens }) => tokens > 0);
}

/**
 * The most that the provider's cache can lose if the context changes at some message: all messages of the last request, if
 * its provider has reported a cache. Undefined: nothing was reported. `window`: undefined if no pi has said it.
 */
export function mostLost(
  usage: Pick<CostUsage, "input" | "cacheRead" | "cacheWrite"> | undefined,
  window: Inspected["window"] | undefined,
): number | undefined {
  if (usage === undefined) return undefined;
  const { system = 0, tools = 0 } = window?.byKind ?? {};
  const { input, cacheRead, cacheWrite } = usage;
  // Some providers do not report what they write to their cache.
  const cached = cacheRead + cacheWrite === 0 ? 0 : input + cacheRead + cacheWrite;
  return Math.max(0, cached - system - tools);
}

/** The same for a block that is opened or closed: what follows its first message. */
export function lostAt(block: Pick<Block, "startId">, { messages, blocks }: Pruned, most: number): number {
  const from = messages.findIndex(({ id }) => id === block.startId);
  if (from < 0) return most;
  const tokensOf = new Map(blocks.map(({ id, tokensAfter }) => [id, tokensAfter]));
  const counted = new Set<string>();
  let after = 0;
  for (const message of messages.slice(from)) {
    if (message.block === undefined) after += message.tokens;
    else if (!counted.has(message.block)) after += tokensOf.get(message.block) ?? 0;
    if (message.block !== undefined) counted.add(message.block);
  }
  return Math.min(most, after);
}

/** The window of the model that is chosen now. `ofLast`: that of the last answer, which another model may have given. */
export function windowOf(
  chosen: ModelChoice | undefined,
  last: string | undefined,
  ofLast: number | undefined,
): number | undefined {
  if (chosen?.contextWindow !== undefined) return chosen.contextWindow;
  const isOther = chosen !== undefined && last !== undefined && last !== `${chosen.provider}/${chosen.id}`;
  return isOther ? undefined : ofLast;
}

/** A limit of the window. */
export interface ContextLimit {
  readonly tokens: number;
  readonly what: "reminds" | "tells" | "compacts";
}

/** The limits that are on, the lowest first. */
export function limitsOf(
  { window, configuration, parts }: Inspected,
  pruned: Pruned | undefined,
): readonly ContextLimit[] {
  const { tokens } = window;
  const { enabled, thresholdPercent, maxContextTokens } = configuration.compaction ?? {};
  const { thresholdTokens } = parts["compaction"]?.figures ?? {};
  const shares = tokens === null || typeof thresholdPercent !== "number" ? [] : [tokens * thresholdPercent];
  const compacts = [...shares, maxContextTokens, thresholdTokens].filter((one) => typeof one === "number");
  const limits: ContextLimit[] = [];
  if (enabled === true && compacts.length > 0) limits.push({ what: "compacts", tokens: Math.min(...compacts) });
  if (pruned?.window != null && pruned.off === undefined) {
    limits.push({ what: "reminds", tokens: pruned.window.min }, { what: "tells", tokens: pruned.window.max });
  }
  return limits.sort((a, b) => a.tokens - b.tokens);
}
