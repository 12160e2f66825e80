import type { AssistantMessage, Call, Place, ResultMessage } from "./calls.ts";

/** Which strategy takes something out; `sweep`: the user does. In the order in which they have an entry. */
export const strategyNames = [
  "sweep",
  "deduplication",
  "supersedeWrites",
  "staleReads",
  "purgeErrors",
  "sizeDecay",
] as const;
export type StrategyName = (typeof strategyNames)[number];

/** An output that goes. */
export interface OutputRemoval {
  readonly kind: "output";
  readonly strategy: StrategyName;
  readonly target: Place<ResultMessage>;
  readonly call: Call;
  /** What its placeholder says. */
  readonly why?: string;
  /** UTF-16 units of its text that stay around a mark. Absent: a placeholder is there instead. */
  readonly keeps?: { readonly head: number; readonly tail: number };
}

/** Long arguments that go, of one or more calls of one message. */
export interface ArgumentsRemoval {
  readonly kind: "arguments";
  readonly strategy: StrategyName;
  readonly target: Place<AssistantMessage>;
  /** Why, as the marks say it. */
  readonly calls: ReadonlyMap<Call["block"], string>;
}

export type Removal = OutputRemoval | ArgumentsRemoval;
