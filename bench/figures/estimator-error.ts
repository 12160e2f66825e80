import { countTokens as cl100k } from "gpt-tokenizer/encoding/cl100k_base";
import { countTokens as r50k } from "gpt-tokenizer/encoding/r50k_base";
import { Counter } from "../../context/parts/estimator/counts.ts";
import { runTrace, share, type TraceRun } from "../../test/helpers/estimator-runs.ts";
import { type Tokenizer, tokenTrace, traceClasses } from "../../test/helpers/token-traces.ts";
import type { Figure, Row } from "../lib/figure.ts";

/** Each service with the constant that it adds to a message. */
const services: readonly (readonly [name: string, tokenizer: Tokenizer, perMessage: number])[] = [
  ["cl100k_base", cl100k, 7],
  ["r50k_base", r50k, 3],
];
const turns = 30;
const seeds = [1, 2, 3];
/** A decision that depends on the context's size: whether it exceeds this share of the run's last request. */
const thresholdShare = 0.7;

/** The difference between estimates of requests and a service's counts, compared with a quarter of the characters. */
export const estimatorError: Figure = {
  title: "Estimates of requests from the sixth turn on: their difference from a service's counts",
  repetitions: 5,
  measure: async ({ repetitions }) => {
    const rows: Row[] = [];
    for (const [name, tokenizer, perMessage] of services) {
      for (const kind of traceClasses) {
        const runs = seeds.map((seed) => runTrace({ kind, seed, turns, tokenizer, perMessage }));
        rows.push(...errorRows(`${kind}, ${name}`, runs));
      }
    }
    rows.push(...timeRows(repetitions));
    const notes = [
      `${seeds.length} runs of ${turns} turns of each class; a service counts with the vocabulary, and adds a constant to each message`,
      "added: the same difference as a share of the tokens since the previous request; /4: a quarter of their characters, as pi counts",
      `decisions: of all requests, those in which estimate and count are on different sides of ${thresholdShare * 100} % of the run's last request`,
    ];
    return { rows, notes };
  },
};

function errorRows(name: string, runs: readonly TraceRun[]): Row[] {
  const all = (of: "errors" | "addedErrors" | "quarterErrors" | "quarterAddedErrors") => runs.flatMap((run) => run[of]);
  const percent = (of: Parameters<typeof all>[0], at: number): number[] => [100 * share(all(of), at)];
  return [
    { name: `${name}: median`, unit: "%", values: percent("errors", 0.5) },
    { name: `${name}: p95`, unit: "%", values: percent("errors", 0.95) },
    { name: `${name}: median, /4`, unit: "%", values: percent("quarterErrors", 0.5) },
    { name: `${name}: p95, /4`, unit: "%", values: percent("quarterErrors", 0.95) },
    { name: `${name}: median, added`, unit: "%", values: percent("addedErrors", 0.5) },
    { name: `${name}: median, added, /4`, unit: "%", values: percent("quarterAddedErrors", 0.5) },
    { name: `${name}: other decisions`, unit: "%", values: [otherDecisions(runs, "estimated")] },
    { name: `${name}: other decisions, /4`, unit: "%", values: [otherDecisions(runs, "quarter")] },
  ];
}

function otherDecisions(runs: readonly TraceRun[], by: "estimated" | "quarter"): number {
  const differ = runs.map(({ requests }) => {
    const threshold = thresholdShare * (requests.at(-1)?.counted ?? 0);
    return requests.filter((request) => request.counted > threshold !== request[by] > threshold).length;
  });
  const all = runs.reduce((sum, { requests }) => sum + requests.length, 0);
  return (100 * differ.reduce((sum, count) => sum + count, 0)) / all;
}

/**
 * Each message counted for the first time, again as another object with the same content, and again as the same
 * object.
 */
function timeRows(repetitions: number): Row[] {
  const messages = tokenTrace("mixed", 1, 250).flat();
  const times: { readonly first: number[]; readonly copy: number[]; readonly same: number[] } = {
    first: [],
    copy: [],
    same: [],
  };
  for (let turn = 0; turn <= repetitions; turn += 1) {
    const counter = new Counter(20_000);
    const copies = structuredClone(messages);
    for (const [name, list] of [
      ["first", messages],
      ["copy", copies],
      ["same", copies],
    ] as const) {
      const began = performance.now();
      for (const message of list) counter.message(message);
      const microseconds = ((performance.now() - began) * 1_000) / list.length;
      // The first turn warms up the compiler.
      if (turn > 0) times[name].push(microseconds);
    }
  }
  return [
    { name: "a new message", unit: "us", values: times.first },
    { name: "another object with the same content", unit: "us", values: times.copy },
    { name: "the same object again", unit: "us", values: times.same },
  ];
}
