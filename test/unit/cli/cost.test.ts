import { expect, test } from "vitest";
import { cost } from "../../../cli/cost.ts";
import { bars } from "../../../cli/cost-bars.ts";
import { FakeDaemon } from "../client/fake-daemon.ts";
import { sessionInfo } from "../client/fixtures.ts";
import { type MemoryOutputOptions, memoryOutput } from "./memory-output.ts";

const usage = (totalTokens: number, total: number) => ({
  input: totalTokens,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens,
  cost: { input: total, output: 0, cacheRead: 0, cacheWrite: 0, total },
});
const phase = { isOpen: true, requests: 1, wallMs: 61_000 };
const report = {
  total: usage(40_000, 0.04),
  byModel: { "p/small": usage(10_000, 0.01), "p/large": usage(30_000, 0.03) },
  bySource: { assistant: usage(40_000, 0.04), compaction_failed: usage(5_000, 0.005) },
  phases: [
    { ...phase, label: "outer", path: ["outer"], usage: usage(20_000, 0.02) },
    { ...phase, label: "in\u001b[2Jner", path: ["outer", "in\u001b[2Jner"], usage: usage(10_000, 0.01) },
  ],
  requests: 3,
  estimated: true,
  budget: { usd: 0.05, onBudget: "stop" as const, spentUsd: 0.04, warnAt: 0.8 },
  checkpoints: [],
};

async function shown(options: MemoryOutputOptions, prepare: (daemon: FakeDaemon) => void = () => {}): Promise<string> {
  await using daemon = await FakeDaemon.start();
  daemon.answer("session/list", () => ({ sessions: [sessionInfo({ sessionId: "0199-aa" })] }));
  daemon.answer("cost/report", () => report);
  prepare(daemon);
  const { output, stdout } = memoryOutput(options);
  const { signal } = new AbortController();
  const given = { "state-dir": daemon.stateDir, "no-start": true };
  expect(await cost({ options: given, arguments: ["last"], output, env: {}, signal })).toBe(0);
  return stdout();
}

test("costs are shown by phase, model and source, without bars in a pipe", async () => {
  expect(await shown({})).toBe(
    [
      "$0.0400 for 40,000 tokens in 3 requests (40,000 in, 0 out, 0 read from the cache, 0 written to it)",
      "Some usage has no known price, so the real cost may be higher.",
      "80 % of the budget of $0.0500; when it is spent, the next prompt is refused.",
      "",
      "PHASES",
      "outer       $0.0200   50 %  20,000 tokens, 1 request, 1 min, open",
      "  in[2Jner  $0.0100   25 %  10,000 tokens, 1 request, 1 min, open",
      "",
      "MODELS",
      "p/large  $0.0300   75 %  30,000 tokens",
      "p/small  $0.0100   25 %  10,000 tokens",
      "",
      "SPENT ON",
      "answers                             $0.0400  100 %  40,000 tokens",
      "unused summaries (not in the sums)  $0.0050    0 %  5,000 tokens",
      "",
    ].join("\n"),
  );
});

test("a terminal gets bars, and --json the unchanged report", async () => {
  const lines = (await shown({ isTerminal: true, columns: 60, env: { NO_COLOR: "1" } })).split("\n");
  expect(lines).toContain("p/large  $0.0300   75 %  ███████████████       30,000 tokens");
  expect(JSON.parse(await shown({ json: true }))).toEqual({ ...report, saved: null });
});

test("what parts and pruning saved is named an estimate, and parts that save nothing are left out", async () => {
  const part = {
    enabled: true,
    state: "on",
    savedTokens: 0,
    savedUsd: 0,
    spentTokens: 0,
    spentUsd: 0,
    figures: {},
  } as const;
  const parts = {
    estimator: part,
    masking: { ...part, savedTokens: 41_000, savedUsd: 0.0123 },
    toolResults: { ...part, savedTokens: 9_000, spentTokens: 100 },
    skills: { ...part, enabled: false, savedTokens: 7 },
  };
  const stats = {
    ...{ now: 0, blocks: [], strategies: {}, cache: { misses: 0, tokens: 0, usd: null }, echoes: 0 },
    ...{ removed: { count: 2, tokens: 5_000 }, net: { tokens: 4_000, usd: null } },
    ...{ standing: { system: 0, tool: 0 }, calls: { succeeded: 0, failed: 0 } },
  };
  const on = (daemon: FakeDaemon): void => {
    daemon.answer("optimisation/inspect", () => ({
      ...{ configuration: {}, parts },
      window: { tokens: null, used: 0, byKind: {}, masked: [] },
    }));
    daemon.answer("pruning/stats", () => stats);
  };
  const lines = (await shown({}, on)).split("\n");
  expect(lines).toContain(
    "Saved about 50,000 tokens ($0.0123) by masking, toolResults; spent 100 tokens on it. This is an estimate.",
  );
  expect(lines).toContain(
    "Pruning removed about 5,000 tokens from the context: 4,000 tokens after losses in the provider's cache. This is an estimate.",
  );
  const { masking, toolResults } = parts;
  expect(JSON.parse(await shown({ json: true }, on))).toEqual({
    ...report,
    saved: { parts: { masking, toolResults }, pruning: stats },
  });
});

test("bars fit the terminal, and are omitted if there is no space", () => {
  const lines = [
    { name: "a", amount: "$1", share: 1, more: "1 token" },
    { name: "b", amount: "$0", share: 0.01, more: "0 tokens" },
  ];
  for (const width of [20, 30, 40, 80, 200]) {
    const drawn = bars(lines, width);
    for (const line of drawn) expect(line.length).toBeLessThanOrEqual(width);
    expect(drawn[0]?.includes("█")).toBe(width >= 24);
  }
});
