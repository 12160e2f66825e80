import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

/** A change to earlier context that a part would make. */
export interface ProposedChange {
  /** Tokens that each later request has less. */
  readonly freedTokens: number;
  /** Tokens from the first change to the end, or to the first place that changes anyway: they are written anew. */
  readonly suffixTokens: number;
}

export interface CacheDecision {
  readonly act: boolean;
  readonly why: "saves" | "cold" | "no_price" | "above_max" | "too_small" | "too_dear";
  /** What it costs once, and saves with each request. 0 where there is no price. */
  readonly costUsd: number;
  readonly savedUsdPerRequest: number;
}

/** Says whether a change to earlier context is worth the provider's cache. */
export interface CacheRule {
  decide(change: ProposedChange, ctx: ExtensionContext): CacheDecision;
  /** At least so many tokens are freed at a time, while the cache is warm. */
  minBatchTokens(ctx: ExtensionContext): number;
  /** The entries that a part has changed, so that the loss of the cache is put down to it. */
  changed(part: string, entryIds: readonly string[]): void;
}
