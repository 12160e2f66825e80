export const traceNames = ["short", "autonomous", "dialogue", "tools"] as const;
export type TraceName = (typeof traceNames)[number];

/** What a call is for: its results' share of the tokens is part of a trace's make-up. */
export type CallKind = "read" | "shell" | "other";

export interface TraceCall {
  readonly kind: CallKind;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: string;
  readonly isError: boolean;
  /** A read of a file that was read before: as it was, or behind a change. */
  readonly repeats?: "same" | "changed";
}

/** One answer of the model with its calls. Without calls it is the last of its prompt. */
export interface TraceTurn {
  readonly text: string;
  readonly calls: readonly TraceCall[];
  /** How long model and tools take before the next request. */
  readonly seconds: number;
}

export interface TracePrompt {
  /** As the user sends it: with `/skill:<name>` in front where it names one. */
  readonly text: string;
  /** How long the user takes before it. */
  readonly pauseSeconds: number;
  readonly turns: readonly TraceTurn[];
}

export interface TraceTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A conversation, told in advance: what the user says, what the model answers, what its tools return. */
export interface Trace {
  readonly name: TraceName;
  readonly prompts: readonly TracePrompt[];
  /** Tools beside pi's own. */
  readonly tools: readonly TraceTool[];
}

export function callsOf(trace: Trace): readonly TraceCall[] {
  return trace.prompts.flatMap(({ turns }) => turns.flatMap(({ calls }) => calls));
}
