export const traceNames = ["short", "autonomous", "dialogue", "tools"] as const;
/** Sessions that outgrow large windows. */
export const longTraceNames = ["long run", "long dialogue"] as const;
export type TraceName = (typeof traceNames)[number] | (typeof longTraceNames)[number];

/** The kind of a call: each kind has a fixed share of the results' tokens. */
export type CallKind = "read" | "shell" | "other";

export interface TraceCall {
  readonly kind: CallKind;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: string;
  readonly isError: boolean;
  /** A repeated read of a file: unchanged, or changed since. */
  readonly repeats?: "same" | "changed";
}

/** One answer of the model with its calls. Without calls it is the last answer to its prompt. */
export interface TraceTurn {
  readonly text: string;
  readonly calls: readonly TraceCall[];
  /** The time of model and tools before the next request. */
  readonly seconds: number;
}

export interface TracePrompt {
  /** As the user sends it: beginning with `/skill:<name>` if it names a skill. */
  readonly text: string;
  /** The user's pause before it. */
  readonly pauseSeconds: number;
  readonly turns: readonly TraceTurn[];
}

export interface TraceTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A scripted conversation: the user's messages, the model's answers, and the tools' results. */
export interface Trace {
  readonly name: TraceName;
  readonly prompts: readonly TracePrompt[];
  /** Tools in addition to pi's own. */
  readonly tools: readonly TraceTool[];
}

export function callsOf(trace: Trace): readonly TraceCall[] {
  return trace.prompts.flatMap(({ turns }) => turns.flatMap(({ calls }) => calls));
}
