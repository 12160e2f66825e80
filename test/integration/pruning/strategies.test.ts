import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import type { PruningChange, PruningStats } from "../../../protocol/pruning/report.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "../optimisation/model.ts";

/** About 1,400 tokens that occur nowhere else. */
const content = (name: string): string => `the file ${name} says something of its own.\n`.repeat(120);
const read = (path: string) => call("read", { path });

const quiet: PruningOptions = { enabled: true, minContext: 0.9, maxContext: 0.95 };
const furnish = ({ cwd }: { readonly cwd: string }): void => {
  mkdirSync(join(cwd, "src"));
  for (const name of ["a", "b", "c"]) writeFileSync(join(cwd, "src", `${name}.ts`), content(name));
};

/** The results and arguments of its calls that the model sees, without tags. */
const resultsIn = ({ messages }: LogEntry): string[] =>
  messages.flatMap(({ toolResults }) => toolResults.map(({ text }) => untagged(text)));
const untagged = (text: string): string => text.replaceAll(/\n?<dcp-message-id>\w+<\/dcp-message-id>/gu, "");

function changesOf(pi: Pi) {
  return pi
    .frames("notice")
    .flatMap((notice) =>
      notice.name === "pruning/changed" && notice.data.cause === "strategies" ? [notice.data] : [],
    );
}

/** Requests that do not extend the one before. */
function breaks(requests: readonly LogEntry[]): number {
  const texts = requests.map(({ body }) => JSON.stringify(body["messages"]).slice(0, -1));
  return texts.filter((text, at) => at > 0 && !text.startsWith(texts[at - 1] ?? "")).length;
}

test("a repeated read of an unchanged file is pruned, of a changed file is not, with one cache miss for each batch", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    furnish,
    pruning: quiet,
    optimisation: { cache: { enabled: true, minBatchTokens: 1_000 }, masking: { expectedRequests: 1_000 } },
  });
  const model = new Model(pi, provider);
  const failing = call("edit", { path: "src/none.ts", edits: [{ oldText: "never there ".repeat(500), newText: "x" }] });
  const requests = await model.run(
    read("src/a.ts"),
    read("src/b.ts"),
    read("src/a.ts"),
    failing,
    call("bash", { command: "echo changed >> src/b.ts" }),
    read("src/b.ts"),
    ...["one", "two", "three"].map((word) => call("bash", { command: `echo ${word}` })),
  );
  const last = requests.at(-1) as LogEntry;
  const [first, ofB, again, error, , changed] = resultsIn(last);
  expect(first).toMatch(/^\[read src\/a\.ts: .* KB, 120 lines, ok; pruned, repeated below; recall r001\]$/u);
  expect(ofB).toBe(content("b"));
  expect(again).toBe(content("a"));
  expect(error).not.toContain("pruned");
  expect(changed).toBe(`${content("b")}changed\n`);
  expect(JSON.stringify(last.body)).toContain("[oldText: 5.9 KB pruned, the call failed; recall r002]");
  expect(requests.flatMap(({ violations }) => violations)).toEqual([]);

  const batches = entriesOf(pi).filter(({ customType }) => customType === "pi-rpcd.recall");
  expect(batches).toHaveLength(2);
  expect(breaks(requests)).toBe(2);
  expect(changesOf(pi)).toMatchObject([{ pruned: ["r001"] }, { pruned: ["r002"] }]);
  for (const { tokens } of changesOf(pi)) expect(tokens).toBeGreaterThan(1_000);

  // The originals stay in the file, and are recalled by their numbers, also after a crash.
  await pi.revive();
  const recalled = await model.calls(call("recall", { id: "r001" }), call("recall", { id: "r002" }));
  expect(recalled.map(untagged)).toEqual([content("a"), "never there ".repeat(500)]);
  const [resumed] = provider.requests.slice(-3) as [LogEntry];
  expect(JSON.stringify(resumed.body["messages"])).toContain(JSON.stringify(last.body["messages"]).slice(1, -1));
});

test.for([
  { expectedRequests: 2, removed: 0 },
  { expectedRequests: 100, removed: 1 },
])(
  "above maxContext, a repeated read goes only if it pays: with $expectedRequests expected requests, $removed is removed",
  async ({ expectedRequests, removed }) => {
    await using provider = await startProvider({ cache: {} });
    await using pi = await startPi({
      provider,
      furnish,
      pruning: { enabled: true, maxContext: 1_000, minContext: 500 },
      optimisation: { cache: { enabled: true }, masking: { expectedRequests } },
    });
    const model = new Model(pi, provider);
    await model.run(read("src/a.ts"), read("src/b.ts"), read("src/a.ts"), call("bash", { command: "echo one" }));
    expect(entriesOf(pi).filter(({ type }) => type === "context_edit")).toHaveLength(removed);
    const { edits } = await pi.send<PruningStats>({ kind: "ask", about: "pruning/stats", params: {} });
    expect(edits?.count).toBe(removed);
    const { predicted, actual } = edits?.recent[0] ?? {};
    if (removed === 0) return;
    expect((predicted?.missedTokens ?? 0) / (actual?.missedTokens ?? 0)).toBeGreaterThan(0.85);
    expect((predicted?.missedTokens ?? 0) / (actual?.missedTokens ?? 0)).toBeLessThan(1.15);
  },
);

test("with a cold cache at a run's start, everything is removed before its first request, and pi gets the edits at its next boundary", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    furnish,
    pruning: quiet,
    models: [{ id: "model-1" }, { id: "model-2" }],
    optimisation: { cache: { enabled: true, minBatchTokens: 100_000 } },
  });
  const model = new Model(pi, provider);
  const before = await model.run(read("src/a.ts"), read("src/b.ts"), read("src/a.ts"));
  expect(breaks(before)).toBe(0);
  const edits = () => entriesOf(pi).filter(({ type }) => type === "context_edit");
  expect(edits()).toEqual([]);
  const { data } = await pi.rpc({ type: "get_state" });
  const { provider: name } = (data as { model: { provider: string } }).model;
  await pi.rpc({ type: "set_model", provider: name, modelId: "model-2" });

  const requests = await model.run(read("src/c.ts"));
  expect(requests.map((request) => resultsIn(request)[0]?.slice(0, 15))).toEqual([
    "[read src/a.ts:",
    "[read src/a.ts:",
  ]);
  expect(breaks(requests)).toBe(0);
  expect(edits()).toHaveLength(1);
  expect(changesOf(pi)).toHaveLength(1);

  // Written edits are not written again, and survive a crash.
  await pi.revive();
  const [resumed, second] = (await model.run(read("src/c.ts"))) as [LogEntry, LogEntry];
  expect(resultsIn(resumed).slice(0, 4)).toEqual(resultsIn(requests[1] as LogEntry));
  expect(breaks([requests[1] as LogEntry, resumed, second])).toBe(0);
  expect(edits()).toHaveLength(1);
});

test("a sweep removes the outputs that the user names, between runs immediately and otherwise at the run's next boundary; counts stay", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    furnish,
    pruning: { ...quiet, protectedFilePatterns: ["src/b.ts"], compress: { minRangeTokens: 0 }, protectRecentTurns: 1 },
    optimisation: { cache: { enabled: true, minBatchTokens: 1_000_000 } },
  });
  const ask = async <T>(about: string, params: object = {}) =>
    await pi.send<T>({ kind: "ask", about: `pruning/${about}`, params });
  /** Without the estimator's changing figures about the prompt, and without savings, which grow with each request. */
  const stats = async () => ({ ...(await ask<PruningStats>("stats")), standing: undefined, edits: undefined });
  const model = new Model(pi, provider);
  await model.run(read("src/a.ts"), read("src/b.ts"), read("src/c.ts"));
  const swept = await ask<PruningChange>("sweep", { last: 2 });
  // One of the two is protected.
  expect(swept).toMatchObject({ state: "done", pruned: [{ recallId: "r001", tool: "read", strategy: "sweep" }] });
  const summary = { startId: "m001", endId: "m002", summary: "a.ts says something of its own, as does b.ts." };
  const requests = await model.run(call("compress", { topic: "Reading files", ranges: [summary] }));
  expect(requests.map((request) => resultsIn(request).find((text) => text.startsWith("[read src/c.ts:")))).toEqual([
    expect.stringMatching(/; pruned; recall r001\]$/u),
    expect.stringMatching(/; pruned; recall r001\]$/u),
  ]);
  expect(resultsIn(requests[0] as LogEntry)[1]).toBe(content("b"));

  const { command, release } = pi.blockingCommand();
  pi.log.forget("hello");
  provider.add(answer(call("bash", { command: `${command}; cat src/a.ts` })), answer("Done."));
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.event("tool_execution_start");
  expect(await ask("sweep")).toMatchObject({ refused: "session_busy" });
  expect(await ask("sweep", { last: 1, wait: true })).toMatchObject({ state: "waiting", pruned: [] });
  await release();
  await pi.settled();
  const [atBoundary] = changesOf(pi);
  expect(atBoundary).toMatchObject({ blocks: [], pruned: ["r002"] });
  expect(resultsIn(provider.requests.at(-1) as LogEntry).at(-1)).toContain("; pruned; recall r002]");

  const counted = await stats();
  expect(counted).toMatchObject({
    removed: { count: 3 },
    strategies: { sweep: { count: 2, tokens: swept.tokens + (atBoundary?.tokens ?? 0) } },
    blocks: [{ id: "b1", topic: "Reading files" }],
    calls: { succeeded: 1, failed: 0 },
    cache: { misses: 0, tokens: 0 },
  });
  const [block] = counted.blocks;
  expect(counted.now).toBe(swept.tokens + (atBoundary?.tokens ?? 0) + (block?.tokens ?? 0));
  expect(counted.removed.tokens).toBe(counted.now);
  await model.run(...Array.from({ length: 5 }, (_, at) => call("bash", { command: `echo ${at}` })));
  expect(await stats()).toEqual(counted);
  await pi.revive();
  expect(await stats()).toEqual(counted);
});
