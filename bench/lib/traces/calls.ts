import type { Random } from "../../../test/soak/random.ts";
import type { CallKind, TraceCall, TraceTool } from "./trace.ts";
import { changed, code, filePath, hits, identifier, log, records } from "./words.ts";

const kibibyte = 1_024;
/** The sizes of results: log-normal, with this median and 95 % below the second value. pi's tools cut at 50 KiB. */
const medianBytes = 3 * kibibyte;
const p95Bytes = 40 * kibibyte;
const mostBytes = 50 * kibibyte;
const spread = Math.log(p95Bytes / medianBytes) / 1.645;

/** Shares of the tokens of all results. */
const shares: Readonly<Record<CallKind, number>> = { read: 0.52, shell: 0.25, other: 0.23 };
/** Tokens per character of each kind's results. */
const density: Readonly<Record<CallKind, number>> = { read: 0.222, shell: 0.283, other: 0.24 };

const repeatedShare = 0.12;
const changedShare = 1 / 3;
const failedShare = 0.06;

interface Plan {
  readonly kind: CallKind;
  bytes: number;
}

/** The calls of a trace in order, the same for the same seed. */
export function traceCalls(random: Random, count: number, tools: readonly TraceTool[]): readonly TraceCall[] {
  const plans = planned(random, count);
  const reads = plans.filter(({ kind }) => kind === "read").sort((a, b) => a.bytes - b.bytes);
  const repeats = Math.round(count * repeatedShare);
  const pairs = random.shuffled(neighbours(reads, repeats));
  const smallest = plans.filter(({ kind }) => kind === "other").sort((a, b) => a.bytes - b.bytes);
  const edits = smallest.slice(0, Math.max(1, Math.round(repeats * changedShare)));
  const inPairs = new Set([...pairs.flat(), ...edits]);
  const calls = plans.filter((plan) => !inPairs.has(plan)).map((plan) => plainCall(random, plan, tools));
  const ordered = failing(random, random.shuffled(calls), Math.round(count * failedShare));
  for (const [at, [first, second]] of pairs.entries()) {
    // A size of the same rank: a repeated read has the length of the first.
    second.bytes = first.bytes;
    let least = 0;
    for (const [i, call] of readTwice(random, first.bytes, edits[at]).entries()) {
      const place = random.integer(least, Math.max(least, Math.floor(ordered.length * (0.5 + 0.2 * i))));
      ordered.splice(place, 0, call);
      least = place + 1;
    }
  }
  return ordered;
}

/** Sizes at even quantiles, so that even few calls have the distribution's shape; kinds that meet the shares. */
function planned(random: Random, count: number): readonly Plan[] {
  const sizes = Array.from({ length: count }, (_, i) => {
    const size = medianBytes * Math.exp(spread * normalQuantile((i + 0.5) / count));
    return Math.round(Math.min(mostBytes, Math.max(40, size)));
  }).reverse();
  const total = sizes.reduce((sum, size) => sum + size, 0) * 0.24;
  const given: Record<CallKind, number> = { read: 0, shell: 0, other: 0 };
  const plans = sizes.map((bytes) => {
    const [kind] = (Object.keys(shares) as CallKind[]).sort(
      (a, b) => shares[b] * total - given[b] - (shares[a] * total - given[a]),
    );
    if (kind === undefined) throw new Error("No kinds are left.");
    given[kind] += bytes * density[kind];
    return { kind, bytes };
  });
  return random.shuffled(plans);
}

/**
 * Pairs of reads of nearly the same size, so that the distribution stays the same when the second gets the size of
 * the first.
 */
function neighbours(sorted: readonly Plan[], count: number): readonly (readonly [Plan, Plan])[] {
  const pairs = Array.from({ length: Math.floor(sorted.length / 2) }, (_, i) => {
    const [first, second] = sorted.slice(2 * i, 2 * i + 2);
    if (first === undefined || second === undefined) throw new Error("There are too few reads.");
    return [first, second] as const;
  });
  // The shortest files are not read again if there are others.
  const worth = pairs.filter(([first, second]) => first.bytes > 500 && second.bytes < 1.6 * first.bytes);
  return [...worth, ...pairs.filter((pair) => !worth.includes(pair))].slice(0, count);
}

function plainCall(random: Random, { kind, bytes }: Plan, tools: readonly TraceTool[]): TraceCall {
  if (kind === "read") return read(filePath(random), code(random, bytes));
  if (kind === "shell") {
    const command = `npm test -- ${filePath(random, "test.ts")} --reporter=${random.pick(["verbose", "dot"])} 2>&1`;
    return { kind, tool: "bash", args: { command }, result: log(random, bytes), isError: false };
  }
  if (tools.length > 0) {
    const { name } = random.pick(tools);
    const args = { query: identifier(random), limit: random.integer(1, 100) };
    return { kind, tool: name, args, result: records(random, bytes), isError: false };
  }
  const tool = random.pick(["grep", "find", "ls"]);
  const args = tool === "ls" ? { path: filePath(random) } : { pattern: identifier(random), path: "src" };
  return { kind, tool, args, result: hits(random, bytes), isError: false };
}

/** A file that is read, possibly changed, and read again. */
function readTwice(random: Random, bytes: number, edit: Plan | undefined): readonly TraceCall[] {
  const path = filePath(random);
  const before = code(random, bytes);
  if (edit === undefined) return [read(path, before), { ...read(path, before), repeats: "same" }];
  const oldText = code(random, 160);
  const edits = [{ oldText, newText: code(random, 160) }];
  const result = `Successfully replaced 1 block(s) in ${path}.\n${code(random, edit.bytes)}`.slice(0, edit.bytes);
  return [
    read(path, before),
    { kind: "other", tool: "edit", args: { path, edits }, result, isError: false },
    { ...read(path, changed(random, before)), repeats: "changed" },
  ];
}

function read(path: string, result: string): TraceCall {
  return { kind: "read", tool: "read", args: { path }, result, isError: false };
}

/** This many of the shell's commands fail; if there are too few, others fail, too. */
function failing(random: Random, calls: readonly TraceCall[], count: number): TraceCall[] {
  const order = [...calls].sort((a, b) => Number(b.kind === "shell") - Number(a.kind === "shell"));
  const chosen = new Set(
    random.shuffled(order.slice(0, Math.max(count, Math.floor(order.length / 3)))).slice(0, count),
  );
  return calls.map((call) => {
    if (!chosen.has(call)) return call;
    const end = `\n\nError: ${identifier(random)} failed\nCommand exited with code 1`;
    return { ...call, isError: true, result: call.result.slice(0, Math.max(1, call.result.length - end.length)) + end };
  });
}

/** The value below which the given share of a standard normal distribution lies (Abramowitz and Stegun 26.2.23, to 4.5e-4). */
function normalQuantile(share: number): number {
  const q = Math.min(share, 1 - share);
  const t = Math.sqrt(-2 * Math.log(q));
  const value =
    t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  return share < 0.5 ? -value : value;
}
