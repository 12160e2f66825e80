import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { PartsConfig } from "../../protocol/link.ts";
import { defaultOptimisation, type OptimisationPart } from "../../protocol/optimisation/config.ts";
import { resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { answer, call } from "../../provider/reply.ts";
import { Random } from "../../test/soak/random.ts";
import type { Figure, Resources, Row, Setting, Table } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { chosenPi, type DirectPiOptions, scriptModel, startPiDirectly } from "../lib/real-pi.ts";
import { quantile, ratios } from "../lib/statistics.ts";
import { code, prose } from "../lib/traces/words.ts";

const fixture = join(import.meta.dirname, "..", "fixtures", "timed-helper.mjs");
const requests = 100;
/** In the middle of the run: each request adds two. */
const contextMessages = 500;

type Times = Readonly<Record<string, number>>;

interface Cost {
  /** Milliseconds of the hooks that run once, when the session begins. */
  readonly startMs: number;
  /** By event. */
  readonly requests: readonly Times[];
  /** Milliseconds of all hooks, per request. */
  readonly hooks: readonly number[];
  /** Milliseconds of the whole pi process, per request. */
  readonly processorMs: number;
}

/** The time of the helper's hooks with every part on and with none, and the time of pi itself. */
export const extensionTime: Figure = {
  title: `Hooks of the helper for a model request, with a context of ${contextMessages} messages`,
  repetitions: 5,
  measure: async (setting, resources) => {
    const parts = Object.keys(defaultOptimisation) as OptimisationPart[];
    const spillDirectory = join(setting.directory, "spill");
    mkdirSync(spillDirectory, { mode: 0o700 });
    const optimisation = resolveOptimisation(Object.fromEntries(parts.map((part) => [part, { enabled: true }])));
    const all: PartsConfig = { optimisation, spillDirectory, labels: {} };
    writeFileSync(join(setting.directory, "file.ts"), code(new Random(1), 1_500));
    const costs: Record<"all" | "none" | "bare", Cost[]> = { all: [], none: [], bare: [] };
    for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
      const [on, off] = [await measure({ parts: all }, setting, resources), await measure({}, setting, resources)];
      const bare = await measure({ helper: "none" }, setting, resources);
      // The first turn warms up the system's caches.
      if (repetition === 0) continue;
      costs.all.push(on);
      costs.none.push(off);
      costs.bare.push(bare);
    }
    const rows = rowsOf(costs);
    return { rows, tables: [tableOf(costs)], notes: [`pi ${chosenPi().version}; ${requests} requests for each value`] };
  },
};

function rowsOf({ all, none, bare }: Readonly<Record<"all" | "none" | "bare", readonly Cost[]>>): readonly Row[] {
  const hooks = (costs: readonly Cost[], share: number): number[] => costs.map((cost) => quantile(cost.hooks, share));
  const processor = (costs: readonly Cost[]): number[] => costs.map((cost) => cost.processorMs);
  return [
    { name: "hooks, every part on, p50", unit: "ms", values: hooks(all, 0.5) },
    { name: "hooks, every part on, p99", unit: "ms", values: hooks(all, 0.99) },
    { name: "hooks, no part on, p50", unit: "ms", values: hooks(none, 0.5) },
    { name: "hooks, no part on, p99", unit: "ms", values: hooks(none, 0.99) },
    { name: "hooks when the session begins, every part on", unit: "ms", values: all.map((cost) => cost.startMs) },
    { name: "hooks when the session begins, no part on", unit: "ms", values: none.map((cost) => cost.startMs) },
    { name: "hooks, every part on / no part on, p50", unit: "x", values: ratios(hooks(all, 0.5), hooks(none, 0.5)) },
    { name: "processor for a request, every part on", unit: "ms", values: processor(all) },
    { name: "processor for a request, pi without a helper", unit: "ms", values: processor(bare) },
    {
      name: "processor for a request, every part on / pi without a helper",
      unit: "x",
      values: ratios(processor(all), processor(bare)),
    },
    {
      name: "processor for a request, no part on / pi without a helper",
      unit: "x",
      values: ratios(processor(none), processor(bare)),
    },
  ];
}

let count = 0;

async function measure(options: DirectPiOptions, setting: Setting, resources: Resources): Promise<Cost> {
  count += 1;
  const file = join(setting.directory, `hooks-${count}.json`);
  let answers = 0;
  const { env } = await scriptModel(
    setting,
    resources,
    {
      maxLogEntries: 4,
      otherwise: ({ toolNames }) => {
        if (toolNames.length === 0) return "A summary.";
        answers += 1;
        return answers < requests ? answer("I look.", call("read", { path: "file.ts" })) : answer("It is done.");
      },
    },
    // The window is large enough that nothing is compacted.
    { models: [{ id: "model-1", contextWindow: 1_000_000 }] },
  );
  const helper = pathToFileURL(join(setting.dist, "extension", "index.js")).href;
  const child = startPiDirectly(
    chosenPi(),
    setting,
    { ...env, HOOK_TIMES: JSON.stringify({ helper, file }) },
    { helper: fixture, entries: pastEntries(contextMessages - requests), ...options },
  );
  const settled = Promise.withResolvers<void>();
  child.onRecord = ({ type }) => type === "agent_settled" && settled.resolve();
  await child.request({ type: "get_state" });
  const before = cpuMicroseconds(child.pid) ?? Number.NaN;
  await child.request({ type: "prompt", message: "Go on." });
  await settled.promise;
  const processorMs = ((cpuMicroseconds(child.pid) ?? Number.NaN) - before) / 1_000 / requests;
  await child.stop();
  if (answers !== requests) throw new Error(`${answers} requests were made instead of ${requests}.`);
  if (options.helper === "none") return { startMs: 0, requests: [], hooks: [], processorMs };
  const times = JSON.parse(readFileSync(file, "utf8")) as readonly Times[];
  const startMs = times[0]?.["session_start"] ?? 0;
  const each = times.map(({ session_start: _, ...events }) => events);
  const hooks = each.map((events) => Object.values(events).reduce((sum, ms) => sum + ms, 0));
  return { startMs, requests: each, hooks, processorMs };
}

/** Which events take the time. */
function tableOf({ all, none }: Readonly<Record<"all" | "none", readonly Cost[]>>): Table {
  const middle = (costs: readonly Cost[], event: string, share: number): number =>
    quantile(
      costs.flatMap((cost) => cost.requests.map((events) => events[event] ?? 0)),
      share,
    );
  const events = new Set(all.flatMap((cost) => cost.requests.flatMap(Object.keys)));
  const rows = [...events].map((event) => [
    ...[event, middle(all, event, 0.5), middle(all, event, 0.99)],
    ...[middle(none, event, 0.5), middle(none, event, 0.99)],
  ]);
  rows.sort((a, b) => Number(b[1]) - Number(a[1]));
  const columns = ["event", "every part p50", "p99", "no part p50", "p99"];
  return { title: "ms by event, of all repetitions", columns, rows };
}

/** This many messages in pi's session file format: prompts, calls, results of about 1.5 KB, answers. */
function pastEntries(messages: number): readonly object[] {
  const random = new Random(9);
  const model = { api: "openai-completions", provider: "scripted", model: "model-1" };
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
  return Array.from({ length: messages }, (_, at) => {
    const timestamp = 1_795_000_000_000 + at * 1_000;
    const text = (length: number) => [{ type: "text", text: prose(random, length) }];
    const called = [{ type: "toolCall", id: `call_${at}`, name: "read", arguments: { path: `src/${at}.ts` } }];
    const result = { toolCallId: `call_${at - 1}`, toolName: "read", isError: false };
    const said = [
      { role: "user", content: text(200), timestamp },
      { role: "assistant", content: called, ...model, usage, stopReason: "toolUse", timestamp },
      { role: "toolResult", ...result, content: [{ type: "text", text: code(random, 1_500) }], timestamp },
      { role: "assistant", content: text(400), ...model, usage, stopReason: "stop", timestamp },
    ];
    const id = (index: number): string => index.toString(16).padStart(8, "0");
    const iso = new Date(timestamp).toISOString();
    return {
      type: "message",
      id: id(at),
      parentId: at === 0 ? null : id(at - 1),
      timestamp: iso,
      message: said[at % 4],
    };
  });
}
