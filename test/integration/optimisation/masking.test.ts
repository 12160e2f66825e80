import { expect, test } from "vitest";
import type { Result } from "../../../protocol/methods.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "./model.ts";

const optimisation = {
  masking: { enabled: true, afterTurns: 5, protectTokens: 4_000 },
  cache: { enabled: false, minBatchTokens: 8_000 },
};

/** About 1,400 tokens that occur nowhere else. */
const output = (name: string): string => `the output ${name} says something of its own.\n`.repeat(120);
const emit = (name: string, more = {}) => call("emit", { text: output(name), path: `src/${name}.ts`, ...more });
const shows = (request: LogEntry | undefined, name: string): boolean =>
  request?.hasText(`the output ${name} says`) ?? false;

test("masking counts model turns, not user turns: a run with one message and 60 calls is masked in few batches", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    optimisation,
    after: ["emitting"],
    models: [{ id: "model-1", input: ["text", "image"] }],
  });
  const model = new Model(pi, provider);
  const names = Array.from({ length: 60 }, (_, at) => `n${at + 1}`);
  const requests = await model.run(
    emit("picture", { image: true }),
    emit("failure", { fails: true }),
    ...names.map((name) => emit(name)),
  );
  const last = requests.at(-1);

  expect(requests.some(hasImage)).toBe(true);
  // Masking provider payloads as if they were pi messages had no effect, so this test checks the payload.
  expect(names.slice(0, 40).filter((name) => shows(last, name))).toEqual([]);
  expect(names.slice(-6).every((name) => shows(last, name))).toBe(true);
  expect(shows(last, "failure")).toBe(true);
  expect(requests.slice(-5).some(hasImage)).toBe(false);
  const size = (output("n7").length / 1_024).toFixed(1);
  expect(last?.hasText(`[emit src/n7.ts: ${size} KB, 120 lines, ok; masked; recall r008]`)).toBe(true);
  expect(last?.hasText("[emit src/picture.ts: ")).toBe(true);
  // A placeholder that mentions a nonexistent summary misleads.
  expect(last?.hasText("summar", { roles: ["tool"] })).toBe(false);

  // A boundary that moves each turn costs a cache miss each turn: requests must repeat earlier ones, except for the
  // batches.
  const batches = entriesOf(pi).filter(({ customType }) => customType === "pi-rpcd.recall");
  const changed = requests.filter((request, at) => at > 0 && !isContinued(requests[at - 1], request));
  expect(batches.length).toBeGreaterThan(3);
  expect(batches.length).toBeLessThan(10);
  expect(changed).toHaveLength(batches.length);
  for (const { data } of batches) {
    expect(freedBy(data)).toBeGreaterThan(8_000);
  }

  // The raw entries stay, and the masked ones are the same after a crash, and in a forked session.
  expect(JSON.stringify(entriesOf(pi))).toContain("the output n1 says");
  const before = last?.messages ?? [];
  await pi.revive();
  const original = await model.calls(call("recall", { id: "r008" }), call("recall", { id: "r001" }));
  expect(original[0]).toBe(output("n7"));
  const [request] = provider.requests.slice(-3);
  expect(request?.messages.slice(0, before.length)).toEqual(before);
  expect(provider.requests.slice(-1).some(hasImage)).toBe(true);
  const prompt = entriesOf(pi).findLast(({ message }) => message?.role === "user");
  await pi.rpc({ type: "fork", entryId: prompt?.id });
  expect(await model.recall("r009")).toBe(output("n8"));
  expect(await model.recall("r099")).toBe("r099 is not available here.");
});

test("outputs of commands are masked too, in a session without a file as well", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, optimisation, after: ["emitting"], isEphemeral: true });
  const model = new Model(pi, provider);
  await pi.rpc({ type: "bash", command: "seq 1000 2000; echo a command of a person" });
  const names = Array.from({ length: 22 }, (_, at) => `n${at + 1}`);
  const requests = await model.run(...names.map((name) => emit(name)));
  expect(requests[0]?.hasText("1999\n2000\na command of a person\n")).toBe(true);
  const last = requests.at(-1);
  expect(last?.hasText("\n1999\n2000")).toBe(false);
  expect(last?.hasText("Ran `seq 1000 2000; echo a command of a person`\n```\n[bash: ")).toBe(true);
  expect(shows(last, "n1")).toBe(false);
  expect(await model.recall("r001")).toMatch(/^1000\n1001\n.*\n2000\na command of a person\n?$/su);
  expect(await model.recall("r002")).toBe(output("n1"));
});

test.for([
  { lifetime: "is over", promptCache: { short: 300 }, pauseMs: 301_000, isCold: true },
  { lifetime: "is not over", promptCache: { short: 3_600 }, pauseMs: 301_000, isCold: false },
  { lifetime: "is unknown", promptCache: undefined, pauseMs: 3_601_000, isCold: false },
] as const)(
  "after a pause, old outputs are masked before the first request if the cache's life is over; it $lifetime",
  async ({ promptCache, pauseMs, isCold }) => {
    let shiftMs = 0;
    await using provider = await startProvider({ cache: { now: () => Date.now() + shiftMs } });
    await using pi = await startPi({
      provider,
      api: "scripted-anthropic",
      before: ["cache-changes"],
      after: ["emitting"],
      models: [{ id: "model-1", ...(promptCache === undefined ? {} : { promptCache }) }],
      optimisation: { masking: { enabled: true, afterTurns: 3, protectTokens: 0 }, cache: { enabled: true } },
    });
    const model = new Model(pi, provider);
    const names = ["n1", "n2", "n3", "n4"];
    await model.run(...names.map((name) => emit(name)));
    const warm = await model.run(emit("n5"));
    expect(warm.every((request) => names.every((name) => shows(request, name)))).toBe(true);
    shiftMs = pauseMs;
    await pi.rpc({ type: "prompt", message: `/cache-do clock ${pauseMs}` });

    const requests = await model.run(emit("n6"), emit("n7"));
    const masked = (request: LogEntry | undefined) => names.filter((name) => !shows(request, name));
    const edits = () => entriesOf(pi).filter(({ type }) => type === "context_edit");
    const report = await pi.send<Result<"cache/report">>({ kind: "ask", about: "cache/report", params: {} });
    expect(requests.map(masked)).toEqual(requests.map(() => (isCold ? names : [])));
    expect(edits()).toHaveLength(isCold ? 4 : 0);
    expect(report.edits?.count).toBe(isCold ? 1 : 0);
    if (!isCold) return;

    // The cache that was gone is not lost by the edits, and no other one is.
    expect(report.edits).toMatchObject({
      predicted: { missedTokens: 0, missedUsd: 0 },
      actual: { missedTokens: 0, missedUsd: 0, requests: 3 },
    });
    expect(report.edits?.actual.savedUsd).toBeGreaterThan(0);
    expect(requests.slice(1).every((request, at) => isContinued(requests[at], request))).toBe(true);
    await pi.revive();
    expect(await model.calls(...["r001", "r004"].map((id) => call("recall", { id })))).toEqual([
      output("n1"),
      output("n4"),
    ]);
    expect(edits()).toHaveLength(4);
  },
);

function freedBy(data: unknown): number {
  return (data as { records: { tokens: number }[] }).records.reduce((sum, { tokens }) => sum + tokens, 0);
}

function hasImage({ messages }: LogEntry): boolean {
  return messages.some(({ imageCount }) => imageCount > 0);
}

/** Whether a request only adds to the one before. */
function isContinued(before: LogEntry | undefined, request: LogEntry): boolean {
  const earlier = JSON.stringify(before?.messages);
  return JSON.stringify(request.messages).startsWith(earlier.slice(0, -1));
}
