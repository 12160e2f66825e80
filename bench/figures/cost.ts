import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FoldOfSession } from "../../context/cost/fold-of-session.ts";
import { COST_MARK_TYPE, markData } from "../../context/cost/marks.ts";
import { FileFold } from "../../server/context/cost/file-fold.ts";
import { Random } from "../../test/soak/random.ts";
import type { Figure, Row } from "../lib/figure.ts";

const seed = 20_260_101;
const sizes = [100, 1_000, 10_000] as const;
const checkpoints = 200;
/** Characters of each entry's content, in addition to its usage. */
const contentChars = 2_000;

type Entry = Readonly<Record<string, unknown>>;
type Session = Parameters<FoldOfSession["read"]>[0];

/** The cost of a checkpoint in pi and of a report in the daemon, and whether their sums equal pi's. */
export const cost: Figure = {
  title: "Checkpoints in sessions of several sizes, reports from their files, and their sums against pi's",
  repetitions: 5,
  measure: async ({ repetitions }) => {
    const rows: Row[] = [];
    for (const size of sizes) {
      const entries = entriesOf(size);
      const measured: Times[] = [];
      for (let at = 0; at < repetitions; at++) {
        measured.push({ checkpoint: checkpointTime([...entries]), ...(await reportTimes(entries)) });
      }
      const name = `${size.toLocaleString("en-US")} entries`;
      const values = (of: keyof Times): number[] => measured.map((one) => one[of]);
      rows.push(
        { name: `${name}: a checkpoint`, unit: "us", values: values("checkpoint") },
        { name: `${name}: the first report`, unit: "ms", values: values("first") },
        { name: `${name}: each later one`, unit: "ms", values: values("again") },
        { name: `${name}: USD / pi's`, unit: "x", values: values("total").map((total) => total / piSum(entries)) },
      );
    }
    return { rows, notes: ["Without pi's time to write an entry; the machine's disk cache is warm."] };
  },
};

interface Times {
  readonly checkpoint: number;
  readonly first: number;
  readonly again: number;
  readonly total: number;
}

/** Microseconds from an answer's end to the following checkpoint, without pi's time to write the entry. */
function checkpointTime(entries: Entry[]): number {
  const fold = new FoldOfSession();
  // Like pi, a new copy each time.
  const session = { sessionManager: { getEntries: () => entries.filter(({ type }) => type !== "session") } };
  const ctx = session as unknown as Session;
  fold.read(ctx);
  const random = new Random(seed + 1);
  const answers = Array.from({ length: checkpoints }, (_, at) => answer(random, entries.length + at));
  const begun = performance.now();
  for (const one of answers) {
    entries.push(one);
    fold.read(ctx);
    entries.push({ type: "custom", customType: COST_MARK_TYPE, data: markData({ kind: "checkpoint", label: "run" }) });
    fold.read(ctx);
  }
  return ((performance.now() - begun) * 1_000) / checkpoints;
}

async function reportTimes(entries: readonly Entry[]): Promise<{ first: number; again: number; total: number }> {
  const directory = mkdtempSync(join(tmpdir(), "bench-cost-"));
  try {
    const file = join(directory, "session.jsonl");
    writeFileSync(file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    const fold = new FileFold(file);
    const begun = performance.now();
    const { whole } = await fold.read();
    const read = performance.now();
    await fold.read();
    return { first: read - begun, again: performance.now() - read, total: whole.total.cost.total };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function entriesOf(count: number): readonly Entry[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (_, at) => (at % 2 === 0 ? user(at) : answer(random, at)));
}

function user(at: number): Entry {
  return { ...base(at), message: { role: "user", content: "a word ".repeat(contentChars / 7) } };
}

function answer(random: Random, at: number): Entry {
  const [input = 0, output = 0, cacheRead = 0, cacheWrite = 0] = [9_000, 900, 90_000, 9_000].map((most) =>
    random.integer(0, most),
  );
  const cost = {
    input: input * 3e-6,
    output: output * 15e-6,
    cacheRead: cacheRead * 3e-7,
    cacheWrite: cacheWrite * 3.75e-6,
  };
  const total = cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
  const usage = { input, output, cacheRead, cacheWrite, totalTokens: input + output, cost: { ...cost, total } };
  const content = [{ type: "text", text: "a word ".repeat(contentChars / 7) }];
  return { ...base(at), message: { role: "assistant", provider: "p", model: "m", content, stopReason: "stop", usage } };
}

function base(at: number): Entry {
  return {
    type: "message",
    id: at.toString(16).padStart(8, "0"),
    parentId: at === 0 ? null : (at - 1).toString(16).padStart(8, "0"),
    timestamp: new Date(1_767_225_600_000 + at * 1_000).toISOString(),
  };
}

/** The sum as pi computes it. */
function piSum(entries: readonly Entry[]): number {
  let sum = 0;
  for (const { message } of entries) {
    const { usage } = message as { readonly usage?: { readonly cost: { readonly total: number } } };
    if (usage !== undefined) sum += usage.cost.total;
  }
  return sum;
}
