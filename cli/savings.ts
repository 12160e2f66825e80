import { WireError } from "../protocol/errors.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import { count, usd } from "../protocol/number-text.ts";
import { oneLine } from "./text.ts";

type Parts = Result<"optimisation/inspect">["parts"];
type PruningStats = Result<"pruning/stats">;
type Call = <M extends MethodName>(method: M, params: Params<M>) => Promise<Result<M>>;

/** Estimates of what the parts of a session saved; without the parts that are off. */
export interface Savings {
  readonly parts: Parts;
  readonly pruning: PruningStats | null;
}

/** Returns undefined if nothing that saves tokens is on, or nothing is known without a pi. Starts no pi. */
export async function savingsOf(call: Call, sessionId: string): Promise<Savings | undefined> {
  const [inspected, pruning] = await Promise.all([
    ifKnown(call("optimisation/inspect", { sessionId })),
    pruningStats(call, sessionId),
  ]);
  const on = Object.entries(inspected?.parts ?? {}).filter(([name, { enabled }]) => enabled && !savesNothing.has(name));
  if (on.length === 0 && pruning === undefined) return undefined;
  return { parts: Object.fromEntries(on), pruning: pruning ?? null };
}

/** Undefined: pruning is off, or nothing is known without a pi. */
export function pruningStats(call: Call, sessionId: string): Promise<PruningStats | undefined> {
  return ifKnown(call("pruning/stats", { sessionId }));
}

/** Parts that measure, format or report, and save no tokens themselves. */
const savesNothing: ReadonlySet<string> = new Set(["estimator", "cost", "cache", "format"]);

/** The command prints its result even if the savings are not available. */
async function ifKnown<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

/** The same for people, in a sentence for the parts and one for pruning. */
export function savingsLines({ parts, pruning }: Savings): readonly string[] {
  return [...partsSaved(parts), ...(pruning === null ? [] : [pruned(pruning)])];
}

/** One sentence with the sum of the parts, or none if no part is on. */
export function partsSaved(parts: Parts): readonly string[] {
  const on = Object.entries(parts).filter(([name, { enabled }]) => enabled && !savesNothing.has(name));
  if (on.length === 0) return [];
  const sum = (read: (part: Parts[string]) => number): number => on.reduce((all, [, part]) => all + read(part), 0);
  const saved = sum(({ savedTokens }) => savedTokens);
  const spent = sum(({ spentTokens }) => spentTokens);
  const names = on.filter(([, { savedTokens }]) => savedTokens > 0).map(([name]) => oneLine(name));
  if (saved <= 0) return ["Saved nothing so far. This is an estimate."];
  const by = names.length === 0 ? "" : ` by ${names.join(", ")}`;
  const minus =
    spent <= 0
      ? ""
      : `; spent ${amount(
          spent,
          sum(({ spentUsd }) => spentUsd),
        )} on it`;
  return [
    `Saved about ${amount(
      saved,
      sum(({ savedUsd }) => savedUsd),
    )}${by}${minus}. This is an estimate.`,
  ];
}

/** A sentence about pruning, whose removals count once, not in each request. */
export function pruned({ removed, net }: PruningStats): string {
  if (removed.count === 0) return "Pruning has removed nothing so far.";
  const rest = `${amount(net.tokens, net.usd ?? 0)} after losses in the provider's cache`;
  return `Pruning removed about ${count(removed.tokens)} tokens from the context: ${rest}. This is an estimate.`;
}

function amount(tokens: number, dollars: number): string {
  return `${count(tokens)} tokens${dollars === 0 ? "" : ` (${usd(dollars)})`}`;
}
