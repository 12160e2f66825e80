import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ContextTarget, Repair } from "../../../context/document/document.ts";
import { exportContext } from "../../../context/document/export.ts";
import { finishContext } from "../../../context/document/finish.ts";
import { repairItems } from "../../../context/document/repair.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import type { LogEntry } from "../../../provider/log.ts";
import type { Pi } from "../extension/driver.ts";
import { sharePi } from "../extension/shared-pi.ts";

// Calls of another model with ids and names that no service accepts unchanged, through each service's strict checks.

const services = {
  scripted: "openai-completions",
  "scripted-responses": "openai-responses",
  "scripted-anthropic": "anthropic-messages",
  "scripted-google": "google-generative-ai",
  // For this provider pi cuts the ids of calls.
  openai: "openai-completions",
} as const;
type Service = keyof typeof services;
const names = Object.keys(services) as readonly Service[];

const shared = sharePi();
const kind = { aliases: { openai: "scripted" } } as const;
const timestamp = "2026-11-21T05:00:00.000Z";
const accepted = /^[A-Za-z0-9_-]{1,64}$/;
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { total: 0 } };
const long = "x".repeat(449);

/** Two of them differ only after the part that a service sees, and two in the part that OpenAI Responses omits. */
const calls: readonly (readonly [id: string, name: string])[] = [
  ["call_1|fc_1", "bash"],
  ["call_1|fc_2", "bash"],
  ["a call with spaces", "read file.v2"],
  [`${long}1`, `look_closer_${"y".repeat(80)}`],
  [`${long}2`, "bash"],
  [`${"y".repeat(41)}1`, "bash"],
  [`${"y".repeat(41)}2`, "bash"],
  ["c", "7zip"],
  ["d", "-x"],
  ["c_", "bash"],
  ["_", "bash"],
  ["", "bash"],
  ["call:ä€🙈", "bash"],
];

/** A session file as another program may have left it. */
function storedLines(cwd: string): readonly object[] {
  const model = { api: "openai-responses", provider: "elsewhere", model: "other" };
  const messages = [
    { role: "user", content: [{ type: "text", text: "Look into it." }] },
    {
      ...{ role: "assistant", ...model, usage, stopReason: "toolUse" },
      content: [
        { type: "text", text: "I call." },
        ...calls.map(([id, name], n) => ({ type: "toolCall", id, name, arguments: { n } })),
      ],
    },
    ...calls.map(([toolCallId, toolName], n) => ({
      ...{ role: "toolResult", toolCallId, toolName, isError: false },
      content: [{ type: "text", text: `Result ${n}.` }],
    })),
    {
      ...{ role: "assistant", ...model, usage, stopReason: "stop" },
      content: [{ type: "text", text: "It is done." }],
    },
  ];
  return [
    { type: "session", version: 3, id: "stored", timestamp, cwd },
    ...messages.map((message, n) => ({
      ...{
        type: "message",
        id: `0000000${n.toString(16)}`,
        parentId: n === 0 ? null : `0000000${(n - 1).toString(16)}`,
      },
      timestamp,
      message: { ...message, timestamp: Date.parse(timestamp) + n },
    })),
  ];
}

/** The result for a model of the service: the lines of a new session file, and the repairs. */
function normalised(stored: readonly object[], service: Service, cwd: string) {
  const target: ContextTarget = { api: services[service], provider: service, id: "model-1", takesImages: false };
  const repairs: Repair[] = [];
  const { document } = exportContext(stored);
  const items = repairItems(document.items ?? [], { target, repair: true, note: (repair) => repairs.push(repair) });
  const prepared = finishContext({ items, nodes: items.length, repairs: { listed: repairs, counts: {} } }, {}, target);
  const header = { id: `new-${service}`, timestamp: Date.parse(timestamp), cwd };
  return { lines: [...sessionEntries(prepared, header)], codes: repairs.map(({ code }) => code) };
}

let files = 0;

async function open(pi: Pi, lines: readonly object[], service: Service): Promise<void> {
  const file = join(pi.directory, "sessions", `calls-${files++}.jsonl`);
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
  await pi.replaceSession(file);
  await pi.rpc({ type: "set_model", provider: service, modelId: "model-1" });
}

async function ask(pi: Pi): Promise<void> {
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled();
}

test("every service accepts repaired ids with |, with spaces or of 450 characters, and repaired names", async () => {
  await using lent = await shared.use(kind);
  const { pi, provider } = lent;
  const stored = storedLines(pi.cwd);
  for (const service of names) {
    const { lines, codes } = normalised(stored, service, pi.cwd);
    expect(new Set(codes), service).toEqual(new Set(["bad_call_id", "bad_tool_name"]));
    await open(pi, lines, service);
    await ask(pi);
    const request = provider.requests.at(-1) as LogEntry;
    expect([request.violations, request.outcome], service).toEqual([[], "answered"]);
    const sent = request.messages.flatMap(({ toolCalls }) => toolCalls);
    const results = request.messages.flatMap(({ toolResults }) => toolResults);
    expect(sent.map((call) => call.arguments)).toEqual(calls.map((_, n) => ({ n })));
    expect(sent.map(({ name }) => name).filter((name) => !accepted.test(name))).toEqual([]);
    expect(results.map(({ text }) => text)).toEqual(calls.map((_, n) => `Result ${n}.`));
    // Google's older models have no ids: what pi sends for them is not compared.
    if (service === "scripted-google") continue;
    const ids = sent.map(({ id }) => id);
    expect([new Set(ids).size, ids.filter((id) => !accepted.test(id))]).toEqual([calls.length, []]);
    expect(results.map(({ callId }) => callId)).toEqual(ids);
  }
  expect(provider.requests).toHaveLength(names.length);
});

test("every service refuses them unrepaired", async () => {
  await using lent = await shared.use(kind);
  const { pi, provider } = lent;
  const stored = storedLines(pi.cwd);
  for (const service of names) {
    await open(pi, stored, service);
    await ask(pi);
    expect(provider.requests.at(-1)).toMatchObject({ outcome: "refused", status: 400 });
  }
  expect(provider.requests).toHaveLength(names.length);
});
