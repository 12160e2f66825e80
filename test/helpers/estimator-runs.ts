import { createEstimator, type TokenEstimator } from "../../context/parts/estimator/estimator.ts";
import type { AgentMessage } from "../../extension/pi-types.ts";
import { defaultOptimisation } from "../../protocol/optimisation/config.ts";
import { fakeContext, fakeHost, fakeStatus } from "../unit/context/fake-host.ts";
import { assistant, countedBy, quarterOf, type Tokenizer, type TraceClass, tokenTrace } from "./token-traces.ts";

/** Turns for learning, whose errors are not reported. */
const learning = 5;

export interface TraceRun {
  /** For each request after the first five: the distance of the estimate from the count, as a share of the count. */
  readonly errors: readonly number[];
  /** The same for the messages added since the request before. */
  readonly addedErrors: readonly number[];
  /** The same with a quarter of the characters for the added messages, as pi does. */
  readonly quarterErrors: readonly number[];
  readonly quarterAddedErrors: readonly number[];
  /** The requests, each with the count and both estimates. */
  readonly requests: readonly { readonly counted: number; readonly estimated: number; readonly quarter: number }[];
}

export interface TraceOptions {
  readonly kind: TraceClass;
  readonly seed: number;
  readonly turns: number;
  readonly tokenizer: Tokenizer;
  readonly perMessage: number;
}

/** Runs an estimator: it estimates each request, and then gets the service's count. */
export function runTrace({ kind, seed, turns, tokenizer, perMessage }: TraceOptions): TraceRun {
  const ctx = fakeContext();
  const host = fakeHost(ctx);
  const estimator: TokenEstimator = createEstimator(host, {
    config: () => defaultOptimisation.estimator,
    status: fakeStatus(),
  });
  const count = countedBy(tokenizer, perMessage);
  const messages: AgentMessage[] = [];
  const run = {
    errors: [] as number[],
    addedErrors: [] as number[],
    quarterErrors: [] as number[],
    quarterAddedErrors: [] as number[],
    requests: [] as { counted: number; estimated: number; quarter: number }[],
  };
  let before = 0;
  for (const [turn, added] of tokenTrace(kind, seed, turns).entries()) {
    messages.push(...added);
    const counted = count(messages);
    const estimated = estimator.request(messages, ctx);
    const quarter = added.reduce((sum, message) => sum + quarterOf(message), before);
    if (turn >= learning) {
      run.errors.push(Math.abs(estimated - counted) / counted);
      run.addedErrors.push(Math.abs(estimated - counted) / (counted - before));
      run.quarterErrors.push(Math.abs(quarter - counted) / counted);
      run.quarterAddedErrors.push(Math.abs(quarter - counted) / (counted - before));
      run.requests.push({ counted, estimated, quarter });
    }
    host.pipeline.run("context_with_system", messages, ctx);
    host.pipeline.run("before_provider_request", { messages: [] }, ctx);
    host.pipeline.run("message_end", assistant([], turn, { input: counted, output: 1 }), ctx);
    before = counted;
  }
  if (host.faults.length > 0) throw host.faults[0]?.thrown;
  return run;
}

/** The value below which this share of the values is. */
export function share(values: readonly number[], of: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(of * sorted.length))] ?? Number.NaN;
}
