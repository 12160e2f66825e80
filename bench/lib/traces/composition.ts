import { type CallKind, callsOf, type Trace } from "./trace.ts";

/** The composition of a trace; shares are of tokens where stated. */
export interface Composition {
  readonly tokens: number;
  readonly calls: number;
  readonly requests: number;
  /** Share of tool results in all tokens. */
  readonly resultShare: number;
  /** By kind, shares of the results' tokens. */
  readonly kinds: Readonly<Record<CallKind, number>>;
  /** In bytes. */
  readonly sizes: readonly number[];
  /** Share of all calls. */
  readonly repeatedShare: number;
  /** Share of the repeated reads. */
  readonly changedShare: number;
  /** Share of all calls. */
  readonly failedShare: number;
}

export function compositionOf(trace: Trace, count: (text: string) => number): Composition {
  const calls = callsOf(trace);
  const said = trace.prompts.flatMap(({ text, turns }) => [text, ...turns.map((turn) => turn.text)]);
  const asked = calls.map(({ tool, args }) => `${tool} ${JSON.stringify(args)}`);
  const results: Record<CallKind, number> = { read: 0, shell: 0, other: 0 };
  for (const { kind, result } of calls) results[kind] += count(result);
  const resultTokens = results.read + results.shell + results.other;
  const tokens = resultTokens + [...said, ...asked].reduce((sum, text) => sum + count(text), 0);
  const repeated = calls.filter(({ repeats }) => repeats !== undefined);
  return {
    tokens,
    calls: calls.length,
    requests: trace.prompts.reduce((sum, { turns }) => sum + turns.length, 0),
    resultShare: resultTokens / tokens,
    kinds: {
      read: results.read / resultTokens,
      shell: results.shell / resultTokens,
      other: results.other / resultTokens,
    },
    sizes: calls.map(({ result }) => Buffer.byteLength(result)),
    repeatedShare: repeated.length / calls.length,
    changedShare: repeated.filter(({ repeats }) => repeats === "changed").length / repeated.length,
    failedShare: calls.filter(({ isError }) => isError).length / calls.length,
  };
}
