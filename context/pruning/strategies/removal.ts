import type { AssistantMessage, Call, Place, ResultMessage } from "./calls.ts";

/** The strategies in order of precedence; `sweep` is a removal by the user. */
export const strategyNames = [
  "sweep",
  "deduplication",
  "supersedeWrites",
  "staleReads",
  "purgeErrors",
  "sizeDecay",
] as const;
export type StrategyName = (typeof strategyNames)[number];

/** The removal of an output. */
export interface OutputRemoval {
  readonly kind: "output";
  readonly strategy: StrategyName;
  readonly target: Place<ResultMessage>;
  readonly call: Call;
  /** The reason in the placeholder. */
  readonly why?: string;
  /** UTF-16 units kept around a mark. Absent: a placeholder replaces the output. */
  readonly keeps?: { readonly head: number; readonly tail: number };
}

/** The removal of long arguments in one or more calls of one message. */
export interface ArgumentsRemoval {
  readonly kind: "arguments";
  readonly strategy: StrategyName;
  readonly target: Place<AssistantMessage>;
  /** The reason in the marks, by call. */
  readonly calls: ReadonlyMap<Call["block"], string>;
}

export type Removal = OutputRemoval | ArgumentsRemoval;
