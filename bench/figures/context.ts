import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { answer, call } from "../../provider/reply.ts";
import type { ContextCost, ContextTask } from "../context-process.ts";
import { fewNodes, manyBytes, manyNodes, mebibytesOf, treeDocument } from "../lib/context-documents.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RealPi, realPis, scriptModel } from "../lib/real-pi.ts";
import { run } from "../lib/run.ts";
import { ratios } from "../lib/statistics.ts";

const program = join(import.meta.dirname, "..", "context-process.ts");
const prompts = 4;

/** The parts of a request that a model reads, in order, for each API. */
const apis = {
  scripted: ["tools", "messages"],
  "scripted-responses": ["tools", "input"],
  "scripted-anthropic": ["tools", "system", "messages"],
} as const;

/**
 * The cost of an imported conversation: time and memory to read it, tokens to send it, and the part that a provider
 * can cache.
 */
export const contextCost: Figure = {
  title: "An imported conversation: its document against JSON.parse, its tokens, and the prefix of its requests",
  repetitions: 5,
  measure: async (setting, resources) => {
    const documents = [
      ["10,000 nodes", treeDocument(manyNodes)],
      ["30 MiB", treeDocument(manyBytes)],
    ] as const;
    const rows: Row[] = [];
    const notes: string[] = [];
    for (const [name, text] of documents) {
      const measured = await measureDocument(name, text, setting);
      rows.push(...measured.rows);
      notes.push(measured.note);
    }
    for (const pi of realPis()) rows.push(...(await measurePrefix(pi, setting, resources)));
    notes.push(
      "prepare: parse, check, select, repair, estimate, build, and render the lines of a session file; each in a new process",
      "memory: the peak minus the process's own, including the document's bytes",
      "tokens by estimate; flattened: one text with a tag for each role",
      `prefix: of ${prompts * 2} requests each, the share of one (tools, system, messages; no cache marks) with which the next one begins`,
    );
    return { rows, notes };
  },
};

async function measureDocument(name: string, text: string, setting: Setting): Promise<{ rows: Row[]; note: string }> {
  const path = join(setting.directory, "document.json");
  writeFileSync(path, text);
  const costs: Record<ContextTask, ContextCost[]> = { parse: [], prepare: [], inspect: [] };
  for (let turn = 0; turn < setting.repetitions; turn += 1) {
    for (const task of ["parse", "prepare", "inspect"] as const) costs[task].push(await costOf(task, path));
  }
  const of = (task: ContextTask, what: "ms" | "peakMiB"): readonly number[] => costs[task].map((cost) => cost[what]);
  const inspected = costs.inspect[0];
  const { structured = 0, flattened = 0 } = inspected?.tokens ?? {};
  const note = `${name}: ${mebibytesOf(text).toFixed(1)} MiB, ${inspected?.nodes} nodes, ${inspected?.items} items, about ${structured} tokens`;
  const rows: Row[] = [
    { name: `${name}: time, prepare / JSON.parse`, unit: "x", values: ratios(of("prepare", "ms"), of("parse", "ms")) },
    {
      name: `${name}: peak memory, prepare / JSON.parse`,
      unit: "x",
      values: ratios(of("prepare", "peakMiB"), of("parse", "peakMiB")),
    },
    { name: `${name}: JSON.parse`, unit: "ms", values: of("parse", "ms") },
    { name: `${name}: without the lines of the file`, unit: "ms", values: of("inspect", "ms") },
    { name: `${name}: prepare`, unit: "ms", values: of("prepare", "ms") },
    { name: `${name}: JSON.parse`, unit: "MiB", values: of("parse", "peakMiB") },
    { name: `${name}: prepare`, unit: "MiB", values: of("prepare", "peakMiB") },
    { name: `${name}: tokens, structured / flattened`, unit: "x", values: [structured / flattened] },
  ];
  return { rows, note };
}

async function costOf(task: ContextTask, path: string): Promise<ContextCost> {
  const { code, output } = await run(process.execPath, [...process.execArgv, program, task, path], { stdout: "pipe" });
  if (code !== 0) throw new Error(`The process for "${task}" ended with ${code}.`);
  return JSON.parse(output) as ContextCost;
}

/** The share of a request with which the next request begins, byte by byte: 1 if it is unchanged. */
async function measurePrefix(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const { provider, env } = await scriptModel(setting, resources, {
    otherwise: ({ messages }) =>
      messages.at(-1)?.toolResults.length ? "It is done." : answer("I look.", call("bash", { command: "true" })),
  });
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const document = JSON.parse(treeDocument(fewNodes)) as unknown;
  const rows: Row[] = [];
  for (const [name, keys] of Object.entries(apis)) {
    for (const ephemeral of [false, true]) {
      const first = provider.requests.length;
      const { sessionId } = await client.request("session/create", {
        ...{ cwd: setting.directory, model: `${name}/model-1`, ephemeral },
        context: { document },
      });
      for (let i = 0; i < prompts; i += 1) {
        await client.request("session/prompt", { sessionId, text: `Go on, ${i}.` });
        await client.request("session/waitForIdle", { sessionId });
      }
      await client.request("session/close", { sessionId });
      const sent = provider.requests.slice(first).map(({ body }) => withoutMarks(keys.map((key) => body[key])));
      if (sent.length !== prompts * 2) throw new Error(`${sent.length} requests went out for ${prompts} prompts.`);
      const values = sent.slice(1).map((next, i) => shared(sent[i] ?? "", next));
      const mode = ephemeral ? "ephemeral" : "session";
      const goal = { id: "R000-10", sense: "at least", target: 1 } as const;
      rows.push({ name: `pi ${pi.version}, ${name}, ${mode}: identical prefix`, unit: "x", values, goal });
    }
  }
  return rows;
}

/** Cache marks move with the conversation, and are not content. */
function withoutMarks(read: readonly unknown[]): string {
  return JSON.stringify(read, (key, value: unknown) => (key === "cache_control" ? undefined : value));
}

/** The ends of the list of messages and of the enclosing list are not content. */
function shared(before: string, next: string): number {
  const whole = before.length - "]]".length;
  let at = 0;
  while (at < whole && before.charCodeAt(at) === next.charCodeAt(at)) at += 1;
  // Rounded down, so that 1 means identical.
  return Math.floor((at / whole) * 100) / 100;
}
