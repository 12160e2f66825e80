import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { PruningConfig } from "../../../protocol/pruning/config.ts";
import type { ContextEntry } from "../../parts/masking/candidates.ts";
import { protectionOf } from "../protection/protection.ts";
import { type Call, type Calls, callsOf } from "./calls.ts";
import { decayed } from "./decay.ts";
import { repeated } from "./deduplication.ts";
import { failedCalls, isSigned, longErrors, withLongArguments } from "./failed.ts";
import type { ArgumentsRemoval, OutputRemoval, Removal, StrategyName } from "./removal.ts";
import { staleReads, supersededWrites } from "./superseded.ts";
import { Touches } from "./touches.ts";

/** Tools that carry state, or whose output the model requested by id. Their outputs stay. */
const alwaysProtected = ["write", "edit", "compress", "recall"] as const;

/** The input of the strategies. */
export interface Planning {
  readonly context: readonly ContextEntry[];
  readonly config: PruningConfig;
  readonly cwd: string;
  readonly tokensOf: (message: AgentMessage) => number;
  /** Whether an entry must not be edited or is hidden. */
  readonly isOut: (entryId: string) => boolean;
}

/** All removals of the enabled strategies, at most one per entry, oldest first. */
export function planned({ context, config, cwd, tokensOf, isOut }: Planning): Removal[] {
  const calls = callsOf(context, isOut);
  if (calls.all.length === 0) return [];
  const touches = new Touches(calls, cwd);
  const { deduplication, purgeErrors, supersedeWrites, staleReads: stale, sizeDecay } = config.strategies;
  const wants = (tools: readonly string[]) => {
    const protection = protectionOf(tools, config.protectedFilePatterns);
    return ({ tool, block }: Call): boolean => !protection.isTool(tool) && !protection.isFile(block.arguments, cwd);
  };
  const outputs: OutputRemoval[] = [];
  const marked: ArgumentsRemoval[] = [];
  if (deduplication.enabled) {
    outputs.push(...repeated(calls, touches, wants([...alwaysProtected, ...deduplication.protectedTools])));
  }
  if (supersedeWrites.enabled) {
    marked.push(...argumentsOf(supersededWrites(calls, touches, wants([])), "supersedeWrites"));
  }
  if (stale.enabled) outputs.push(...staleReads(calls, touches, wants([])));
  if (purgeErrors.enabled) {
    const failed = failedCalls(calls, purgeErrors.turns, wants(purgeErrors.protectedTools));
    marked.push(...argumentsOf(withLongArguments(failed), "purgeErrors"));
    if (purgeErrors.mode === "both") outputs.push(...longErrors(failed));
  }
  if (sizeDecay.enabled) outputs.push(...decayed(calls, sizeDecay, tokensOf, wants(alwaysProtected)));
  return onceEach(outputs, marked);
}

/** Removals of the newest calls' outputs, except protected ones. */
export function newestOutputs({ context, config, cwd, isOut }: Planning, calls: number): OutputRemoval[] {
  const { deduplication } = config.strategies;
  const protection = protectionOf([...alwaysProtected, ...deduplication.protectedTools], config.protectedFilePatterns);
  const { all }: Calls = callsOf(context, isOut);
  const answered = all.filter(({ result }) => result !== undefined).slice(-calls);
  return answered.flatMap((call): OutputRemoval[] => {
    const { result: target, tool, block } = call;
    if (target?.isWhole !== true || protection.isTool(tool) || protection.isFile(block.arguments, cwd)) return [];
    return [{ kind: "output", strategy: "sweep", target, call, why: "pruned" }];
  });
}

const whys = { supersedeWrites: "its file was written again", purgeErrors: "the call failed" } as const;

/** Removals of call arguments, grouped by message. A signed call stays unchanged. */
function argumentsOf(calls: readonly Call[], strategy: keyof typeof whys & StrategyName): ArgumentsRemoval[] {
  const byMessage = new Map<string, Call[]>();
  for (const call of calls) {
    if (!call.made.isWhole || isSigned(call.block)) continue;
    byMessage.set(call.made.entryId, [...(byMessage.get(call.made.entryId) ?? []), call]);
  }
  return [...byMessage.values()].map((ofOne) => ({
    kind: "arguments",
    strategy,
    target: (ofOne[0] as Call).made,
    calls: new Map(ofOne.map(({ block }) => [block, whys[strategy]])),
  }));
}

/** The first strategy wins an entry; argument removals of one message are merged, because pi must edit it once. */
function onceEach(outputs: readonly OutputRemoval[], marked: readonly ArgumentsRemoval[]): Removal[] {
  const byEntry = new Map<string, Removal>();
  for (const removal of outputs) {
    if (!byEntry.has(removal.target.entryId)) byEntry.set(removal.target.entryId, removal);
  }
  for (const removal of marked) {
    const { entryId } = removal.target;
    const there = byEntry.get(entryId);
    const calls = there?.kind === "arguments" ? new Map([...removal.calls, ...there.calls]) : removal.calls;
    byEntry.set(entryId, { ...(there?.kind === "arguments" ? there : removal), calls });
  }
  return [...byEntry.values()].toSorted((a, b) => a.target.at - b.target.at);
}
