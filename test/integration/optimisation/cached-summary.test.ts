import { expect, test } from "vitest";
import type { Result } from "../../../protocol/methods.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import type { ScriptedName } from "../../../provider/agent-dir.ts";
import { Gate } from "../../../provider/gate.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, hold, type Reply, status } from "../../../provider/reply.ts";
import { when } from "../../../provider/script.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "../extension/driver.ts";
import { entriesOf } from "./model.ts";

const text = "The committee met on Thursday and decided to postpone it. ".repeat(700);
const isText = (request: LogEntry): boolean => request.hasText("<conversation>");
const isSummary = (request: LogEntry): boolean => request.hasText("Do not answer the conversation");
const isContinued = (request: LogEntry): boolean => isSummary(request) && !isText(request);

/** A model that prints four times, and ends. The context is compacted after its third answer. */
async function working(
  api: ScriptedName,
  summaries: readonly Reply[],
  model: object = {},
): Promise<{ readonly provider: ScriptedProvider; readonly pi: Pi; [Symbol.asyncDispose](): Promise<void> }> {
  const left = [...summaries];
  let turn = 0;
  const provider = await startProvider({
    cache: {},
    otherwise: (request) => {
      if (isSummary(request)) return left.shift() ?? status(500);
      turn += 1;
      return turn > 4 ? answer("All done.") : answer(`Turn ${turn}.`, call("bash", { command: `seq ${turn} 1999` }));
    },
  });
  const pi = await startPi({
    provider,
    api,
    models: [{ id: "model-1", contextWindow: 40_000, maxTokens: 8_000, ...model }],
    parts: {
      optimisation: resolveOptimisation({
        cache: { enabled: true },
        compaction: { thresholdPercent: 0.5, minTurnsBetween: 10 },
      }),
      spillDirectory: "/nowhere",
      labels: {},
    },
  });
  return {
    provider,
    pi,
    [Symbol.asyncDispose]: async () => {
      await pi[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

function compactionsOf(pi: Pi): readonly Readonly<Record<string, unknown>>[] {
  return entriesOf(pi).flatMap((entry) => (entry.type === "compaction" ? [{ ...entry }] : []));
}

/** The conversation in a request, as it was sent. */
function listIn({ body }: LogEntry): string {
  return JSON.stringify(body["messages"] ?? body["input"]);
}

const limits = new Set(["messages", "input", "max_tokens", "max_completion_tokens", "max_output_tokens"]);
/** All of a request except its conversation and the limit of its answer. */
function restOf({ body }: LogEntry): string {
  return JSON.stringify(Object.entries(body).filter(([name]) => !limits.has(name)));
}

const perRequest = new Set(["content-length", "x-stainless-retry-count", "x-stainless-timeout", "date"]);
function headersOf({ headers }: LogEntry): unknown {
  return Object.entries(headers).filter(([name]) => !perRequest.has(name));
}

test.for(["scripted", "scripted-anthropic", "scripted-responses"] as const)(
  "a summary at %s repeats the last request byte for byte, so that it is read from the cache, and no push counts as delivered by it",
  async (api) => {
    const gate = new Gate();
    await using stage = await working(api, [answer("## Goal\nThe committee.", hold(gate))]);
    const { pi, provider } = stage;
    const push1 = gate.reached.then(async () => {
      await pi.hold(push("d1", "Do not forget me."));
      const seen = [...pi.receiptsOf("d1")];
      gate.open();
      return seen;
    });
    await pi.rpc({ type: "prompt", message: text });
    const seenDuringSummary = await push1;
    await pi.settled();

    const at = provider.requests.findIndex(isSummary);
    const last = provider.requests[at - 1] as LogEntry;
    const summary = provider.requests[at] as LogEntry;
    for (const request of [last, summary]) {
      expect(request.violations).toEqual([]);
      expect(Buffer.byteLength(JSON.stringify(request.body))).toBe(request.bodyBytes);
    }
    expect(restOf(summary)).toBe(restOf(last));
    expect(headersOf(summary)).toEqual(headersOf(last));
    const shared = listIn(last).slice(0, -1);
    expect(listIn(summary).slice(0, shared.length)).toBe(shared);
    expect(summary.messages).toHaveLength(last.messages.length + 1);
    expect(summary.messages.at(-1)).toMatchObject({ role: "user", toolResults: [] });
    expect(summary.body).not.toHaveProperty("tool_choice");
    expect(summary.toolNames).toContain("bash");

    const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens } = summary.usage ?? {};
    const before = last.usage;
    const cached = (before?.inputTokens ?? 0) + (before?.cacheReadTokens ?? 0) + (before?.cacheWriteTokens ?? 0);
    expect(cacheReadTokens).toBeGreaterThan(0.98 * cached);
    expect(cacheWriteTokens).toBe(0);
    expect(inputTokens).toBeLessThan(600);
    const [compaction, ...more] = compactionsOf(pi);
    expect(more).toEqual([]);
    expect(compaction).toMatchObject({
      summary: "## Goal\nThe committee.",
      usage: { input: inputTokens, output: outputTokens, cacheRead: cacheReadTokens, cacheWrite: 0 },
    });

    // The summary is not a request of the run, so the push waits for the next one.
    expect(seenDuringSummary).not.toContain("delivered");
    expect(summary.hasText("Do not forget me.")).toBe(false);
    expect(provider.requests[at + 1]?.countText("Do not forget me.")).toBe(1);
    expect(pi.receiptsOf("d1").at(-1)).toBe("answered");
    const report: Result<"cache/report"> = await pi.send({ kind: "ask", about: "cache/report", params: {} });
    expect(report.requests).toBe(provider.requests.length - 1);
    expect(Object.keys(report.causes)).toEqual(["compaction"]);
    expect(provider.requests.slice(at + 1).some((request) => request.hasText("met on Thursday"))).toBe(false);
  },
);

test.for([
  ["calls a tool", answer("I will.", call("bash", { command: "touch called" }))],
  ["fails", status(400)],
  ["ends early", { ...answer("## Goal"), stop: "length" } as const],
] as const)("if the answer to a repeated request %s, the conversation is summarised as a text", async ([, reply]) => {
  await using stage = await working("scripted-anthropic", [reply, answer("They met.")]);
  const { pi, provider } = stage;
  await pi.rpc({ type: "prompt", message: text });
  await pi.settled();
  const asked = provider.requests.filter(isSummary);
  expect(asked.map(isText)).toEqual([false, true]);
  expect(asked[1]?.toolNames).toEqual([]);
  const [compaction] = compactionsOf(pi);
  expect(compaction).toMatchObject({ summary: "They met." });
  const usage = (name: "cacheReadTokens" | "outputTokens" | "inputTokens") =>
    asked.reduce((sum, request) => sum + (request.status === 200 ? (request.usage?.[name] ?? 0) : 0), 0);
  expect(compaction?.["usage"]).toMatchObject({
    input: usage("inputTokens"),
    output: usage("outputTokens"),
    cacheRead: usage("cacheReadTokens"),
  });
  expect(pi.frames("settled")).toHaveLength(1);
});

test.for<[string, object]>([
  ["the provider's cache has expired", { promptCache: { short: 0.001 } }],
  ["the model has no price for reading its cache", { cost: { input: 1, output: 5, cacheRead: 0, cacheWrite: 0 } }],
])("the conversation is summarised as a text if %s", async ([, model]) => {
  await using stage = await working("scripted-anthropic", [answer("They met.")], model);
  const { pi, provider } = stage;
  await pi.rpc({ type: "prompt", message: text });
  await pi.settled();
  expect(provider.requests.filter(isSummary).map(isText)).toEqual([true]);
  expect(compactionsOf(pi)).toMatchObject([{ summary: "They met." }]);
});

test("an abort during a repeated request ends the run without another summary, and its cost is recorded", async () => {
  const gate = new Gate();
  await using stage = await working("scripted-anthropic", [answer("## Goal", hold(gate))]);
  const { pi, provider } = stage;
  await pi.rpc({ type: "prompt", message: text });
  await gate.reached;
  await pi.rpc({ type: "abort" });
  await pi.settled();
  gate.open();
  expect(provider.requests.filter(isSummary).map(isContinued)).toEqual([true]);
  expect(compactionsOf(pi)).toEqual([]);
  const mark = entriesOf(pi).find(({ customType }) => customType === "pi-rpcd.cost");
  expect(mark).toMatchObject({ data: { kind: "failedSummary", usage: { cacheRead: expect.any(Number) } } });
  provider.add(when((request) => request.hasText("Go on."), answer("Yes.")));
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled(2);
  expect(provider.requests.at(-1)?.violations).toEqual([]);
});
