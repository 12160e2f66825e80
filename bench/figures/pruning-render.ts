import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { PartsConfig } from "../../protocol/link.ts";
import { resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { resolvePruning } from "../../protocol/pruning/resolve.ts";
import type { LogEntry } from "../../provider/log.ts";
import { type AnswerReply, answer, call } from "../../provider/reply.ts";
import { Random } from "../../test/soak/random.ts";
import type { Figure, Resources, Row, Setting, Table } from "../lib/figure.ts";
import { isBlock, visibleIn } from "../lib/pruning/visible.ts";
import { chosenPi, type DirectPiOptions, scriptModel, startPiDirectly } from "../lib/real-pi.ts";
import { quantile } from "../lib/statistics.ts";
import { code, prose } from "../lib/traces/words.ts";

const fixture = join(import.meta.dirname, "..", "fixtures", "timed-helper.mjs");
const requests = 200;
/** In the middle of the measured requests: each adds two. Includes messages that blocks cover. */
const messages = 1_000;
const blocks = 50;
/** The hooks that build a request, including the payload. */
const renders = ["context", "context_with_system", "before_provider_request"] as const;

type Times = Readonly<Record<string, number>>;

/** The time of the helper's hooks in a long conversation with many blocks. */
export const pruningRender: Figure = {
  title: `Hooks of the helper for a model request, in a conversation of ${messages} messages with ${blocks} blocks`,
  repetitions: 5,
  measure: async (setting, resources) => {
    const spillDirectory = join(setting.directory, "spill");
    mkdirSync(spillDirectory, { mode: 0o700 });
    writeFileSync(join(setting.directory, "file.ts"), code(new Random(1), 60_000));
    const pruning = resolvePruning({ enabled: true, compress: { minRangeTokens: 0 } });
    const parts: PartsConfig = { optimisation: resolveOptimisation({}), pruning, spillDirectory, labels: {} };
    const entries = await makePast(parts, setting, resources);
    const runs: Record<"on" | "off", (readonly Times[])[]> = { on: [], off: [] };
    for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
      const [on, off] = [
        await measure({ parts, entries }, setting, resources),
        await measure({ entries }, setting, resources),
      ];
      // The first turn warms up the system's caches.
      if (repetition === 0) continue;
      runs.on.push(on);
      runs.off.push(off);
    }
    const notes = [
      `pi ${chosenPi().version}; ${requests} requests for each value; strategies with their defaults`,
      `rendering: ${renders.join(", ")}; every hook: all between two ends of turns`,
    ];
    return { rows: rowsOf(runs), tables: [tableOf(runs)], notes };
  },
};

function rowsOf({ on, off }: Readonly<Record<"on" | "off", readonly (readonly Times[])[]>>): readonly Row[] {
  // The first request of a process reads the whole session.
  const values = (runs: readonly (readonly Times[])[], share: number, of: (times: Times) => number): number[] =>
    runs.map((times) => quantile(times.slice(1).map(of), share));
  const rendering = (times: Times): number => renders.reduce((sum, event) => sum + (times[event] ?? 0), 0);
  const all = (times: Times): number => Object.values(times).reduce((sum, ms) => sum + ms, 0);
  return [
    { name: "rendering, pruning on, p50", unit: "ms", values: values(on, 0.5, rendering) },
    {
      name: "rendering, pruning on, p99",
      unit: "ms",
      values: values(on, 0.99, rendering),
      goal: { id: "R002", sense: "at most", target: 10 },
    },
    { name: "rendering, pruning on, first request", unit: "ms", values: on.map(([first = {}]) => rendering(first)) },
    { name: "rendering, pruning off, p50", unit: "ms", values: values(off, 0.5, rendering) },
    { name: "rendering, pruning off, p99", unit: "ms", values: values(off, 0.99, rendering) },
    { name: "every hook, pruning on, p50", unit: "ms", values: values(on, 0.5, all) },
    { name: "every hook, pruning on, p99", unit: "ms", values: values(on, 0.99, all) },
    { name: "every hook, pruning off, p50", unit: "ms", values: values(off, 0.5, all) },
    { name: "every hook, pruning off, p99", unit: "ms", values: values(off, 0.99, all) },
  ];
}

function tableOf({ on, off }: Readonly<Record<"on" | "off", readonly (readonly Times[])[]>>): Table {
  const middle = (runs: readonly (readonly Times[])[], event: string, share: number): number =>
    quantile(
      runs.flatMap((times) => times.slice(1).map((events) => events[event] ?? 0)),
      share,
    );
  const events = new Set(on.flatMap((times) => times.flatMap(Object.keys)));
  const rows = [...events].map((event) => [
    ...[event, middle(on, event, 0.5), middle(on, event, 0.99)],
    ...[middle(off, event, 0.5), middle(off, event, 0.99)],
  ]);
  rows.sort((a, b) => Number(b[1]) - Number(a[1]));
  return {
    title: "ms by event, of all repetitions, without first requests",
    columns: ["event", "on p50", "p99", "off p50", "p99"],
    rows,
  };
}

/** A conversation as pi and the helper write it: reads, and after each nine of them a block of three. */
async function makePast(parts: PartsConfig, setting: Setting, resources: Resources): Promise<readonly object[]> {
  let [answers, made] = [0, 0];
  const last = (messages - requests) / 2;
  // A block needs nine preceding answers.
  const every = Math.floor((last - 10) / blocks);
  const reply = (request: LogEntry): AnswerReply => {
    answers += 1;
    const range = made < blocks && answers > 10 && answers % every === 0 ? newestClosed(request) : undefined;
    if (range === undefined) return answers < last ? read(answers) : answer("It is done.");
    made += 1;
    const ranges = [{ ...range, summary: prose(new Random(made), 300) }];
    return answer(call("compress", { topic: `Reads ${made}`, ranges }));
  };
  const file = await runPi({ parts }, reply, setting, resources);
  const entries = file.map((line) => JSON.parse(line) as { readonly message?: { readonly details?: unknown } });
  const stored = entries.filter(({ message }) => JSON.stringify(message?.details ?? "").includes('"blocks":[{"id":"b'));
  if (stored.length !== blocks) {
    const refused = file.find((line) => line.includes('"toolName":"compress"') && line.includes('"isError":true'));
    throw new Error(`The conversation has ${stored.length} blocks instead of ${blocks}: ${refused}`);
  }
  return entries;
}

function newestClosed(request: LogEntry): { readonly startId: string; readonly endId: string } | undefined {
  const closed = visibleIn(request).filter((one) => one.answersBehind > 5 && !isBlock(one));
  const [first, end] = [closed.at(-3), closed.at(-1)];
  return first === undefined || end === undefined ? undefined : { startId: first.id, endId: end.id };
}

/** Each call reads other lines, so that nothing is read twice. */
function read(at: number): AnswerReply {
  return answer("I look.", call("read", { path: "file.ts", offset: at, limit: 15 }));
}

let count = 0;

async function measure(options: DirectPiOptions, setting: Setting, resources: Resources): Promise<readonly Times[]> {
  count += 1;
  const file = join(setting.directory, `renders-${count}.json`);
  let answers = 0;
  const reply = (): AnswerReply => {
    answers += 1;
    return answers < requests ? read(messages + answers) : answer("It is done.");
  };
  await runPi({ helper: fixture, ...options }, reply, setting, resources, file);
  if (answers !== requests) throw new Error(`${answers} requests were made instead of ${requests}.`);
  const times = JSON.parse(readFileSync(file, "utf8")) as readonly Times[];
  return times.map(({ session_start: _, ...events }) => events);
}

/** One run of pi. Returns the lines of the session's file after its header. */
async function runPi(
  options: DirectPiOptions,
  reply: (request: LogEntry) => AnswerReply,
  setting: Setting,
  resources: Resources,
  timesFile?: string,
): Promise<readonly string[]> {
  const { env } = await scriptModel(
    setting,
    resources,
    { maxLogEntries: 4, otherwise: reply },
    // The window is large enough that nothing is compacted and no reminder is sent.
    { models: [{ id: "model-1", contextWindow: 10_000_000 }] },
  );
  const helper = pathToFileURL(join(setting.dist, "extension", "index.js")).href;
  const hooks = timesFile === undefined ? {} : { HOOK_TIMES: JSON.stringify({ helper, file: timesFile }) };
  const child = startPiDirectly(chosenPi(), setting, { ...env, ...hooks }, options);
  const settled = Promise.withResolvers<void>();
  child.onRecord = ({ type }) => type === "agent_settled" && settled.resolve();
  const { data } = (await child.request({ type: "get_state" })) as {
    readonly data?: { readonly sessionFile?: string };
  };
  await child.request({ type: "prompt", message: "Go on." });
  await settled.promise;
  await child.stop();
  return readFileSync(data?.sessionFile ?? "", "utf8")
    .trimEnd()
    .split("\n")
    .slice(1);
}
