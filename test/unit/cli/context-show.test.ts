import { expect, test } from "vitest";
import type { ContextDaemon } from "../../../cli/context-daemon.ts";
import { showContext, showLines } from "../../../cli/context-show.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { MethodName, Result } from "../../../protocol/methods.ts";
import { memoryOutput } from "./memory-output.ts";

type Inspected = Result<"optimisation/inspect">;
type Pruned = Result<"pruning/inspect">;
type Cache = Result<"cache/report">;

const sessionId = "0199c2a4-7c1e-7f6b-8a55-0d6f2f1b9c11";
const figures = { figures: {}, savedTokens: 0, savedUsd: 0, spentTokens: 0, spentUsd: 0 };
const off = { enabled: false, state: "off", ...figures } as const;
const on = { enabled: true, state: "on", ...figures } as const;

const inspected: Inspected = {
  configuration: {},
  parts: {
    cache: on,
    masking: { ...on, savedTokens: 41_000, savedUsd: 0.0123, spentTokens: 9_000, spentUsd: 0.034 },
    toolResults: { ...on, state: "degraded", reason: "The disk\nis full." },
    skills: off,
  },
  window: {
    tokens: 200_000,
    used: 61_234,
    byKind: { system: 6_000, tools: 4_000, user: 1_234, toolResults: 50_000, bash: 0 },
    masked: [
      { recallId: "r001", tool: "read", tokens: 12_000, part: "masking" },
      { recallId: "r002", tool: "bash\u001b[2J", tokens: 900, part: "toolResults" },
    ],
  },
};

const report: Cache = {
  ...{ requests: 40, hitRate: 0.934, input: 0, cacheRead: 93_400, cacheWrite: 6_600 },
  causes: {
    tool_set: { count: 2, missedTokens: 12_000, missedUsd: 0.0414 },
    "edit:masking": { count: 1, missedTokens: 80_000, missedUsd: 0.276 },
  },
  recent: [],
  volatile: ["rules"],
};

const sizes = { tokensBefore: 12_000, tokensAfter: 900, isShortened: false, children: [] };
const pruned: Pruned = {
  ...{ configuration: {}, mode: "automatic", window: null, byKind: {}, messages: [], candidates: [] },
  blocks: [
    { id: "b1", topic: "Old", state: "consumed", parent: "b2", ...sizes },
    { id: "b2", topic: "Parser\u001b[2J done", state: "active", startId: "m002", endId: "m031", ...sizes },
    { id: "b3", topic: "Tests", state: "inactive", ...sizes },
    { id: "b4", topic: "Long", state: "active", startId: "m040", endId: "m050", ...sizes, isShortened: true },
  ],
};

const stats: Result<"pruning/stats"> = {
  now: 20_000,
  removed: { count: 7, tokens: 34_000 },
  blocks: [],
  strategies: {},
  cache: { misses: 1, tokens: 4_000, usd: 0.001 },
  net: { tokens: 30_000, usd: 0.01 },
  standing: { system: 0, tool: 0 },
  calls: { succeeded: 0, failed: 0 },
  echoes: 0,
};

const empty: Inspected = {
  configuration: {},
  parts: { cache: off, masking: off },
  window: { tokens: null, used: 10, byKind: { system: 10 }, masked: [] },
};

test("on a terminal the window is shown as bars, the largest kind first, and never wider than the terminal", () => {
  const { output } = memoryOutput({ isTerminal: true, columns: 60, env: { NO_COLOR: "1" } });
  const lines = showLines({ found: inspected, cache: report }, output);
  expect(lines.slice(0, 5)).toEqual([
    "The next request has about 61,234 of 200,000 tokens (31 %):",
    `  toolResults     50,000   82 %  ${"█".repeat(27)}`,
    "  system           6,000   10 %  ███",
    "  tools            4,000    7 %  ██",
    "  user             1,234    2 %  █",
  ]);
  for (const line of lines.slice(0, 5)) expect([...line].length).toBeLessThanOrEqual(60);
});

test("in a pipe it lists the content of the window, the savings and masked outputs, and the causes and costs of cache losses", () => {
  const { output } = memoryOutput();
  expect(showLines({ found: inspected, cache: report }, output)).toEqual([
    "The next request has about 61,234 of 200,000 tokens (31 %):",
    "  toolResults     50,000   82 %",
    "  system           6,000   10 %",
    "  tools            4,000    7 %",
    "  user             1,234    2 %",
    "",
    "Active parts, and an estimate of the tokens that they saved in later requests:",
    "  cache        on        saved 0 tokens",
    "  masking      on        saved 41,000 tokens, $0.0123  spent 9,000 tokens, $0.0340",
    "  toolResults  degraded  saved 0 tokens                  The disk | is full.",
    "Saved about 41,000 tokens ($0.0123) by masking; spent 9,000 tokens ($0.0340) on it. This is an estimate.",
    "",
    "Masked or truncated: 2 results, about 12,900 tokens. The newest:",
    "  r001  read        12,000  masking",
    "  r002  bash[2J        900  toolResults",
    "",
    "The provider read 93 % of all input from its cache, in 40 requests. It was broken by:",
    "  edit:masking     1 x     80,000 tokens  $0.2760",
    "  tool_set         2 x     12,000 tokens  $0.0414",
    "The text of rules varies from request to request.",
  ]);
});

test("control sequences in a part's name invented by another program do not reach the terminal", () => {
  const forged = { ...inspected, parts: { "x\u001b]52;c;AAAA\u0007": on } };
  const text = showLines({ found: forged }, memoryOutput().output).join("\n");
  expect(["\u001b", "\u0007"].filter((control) => text.includes(control))).toEqual([]);
  expect(text).toContain("x]52;c;AAAA");
});

test("a session without enabled parts shows its window and how to enable parts", () => {
  const text = showLines({ found: empty }, memoryOutput().output).join("\n");
  expect(text).toContain("The next request has about 10 tokens:\n  system         10  100 %\n");
  expect(text).toContain("profile lean");
  expect(text).toContain("the parts masking and toolResults are off");
  expect(text).toContain("the part cache is off");
});

test("parts that have done nothing yet say so", () => {
  const fresh = { ...inspected, window: { ...inspected.window, masked: [] } };
  const silent = { ...report, requests: 0, hitRate: null, causes: {}, volatile: [] };
  const text = showLines({ found: fresh, cache: silent }, memoryOutput().output).join("\n");
  expect(text).toContain("Nothing was masked or truncated yet.");
  expect(text).toContain("The provider has not reported reads");
  const answered = { ...silent, requests: 1, hitRate: 1 };
  const whole = showLines({ found: fresh, cache: answered }, memoryOutput().output).join("\n");
  expect(whole).toContain("The provider read 100 % of all input from its cache, in 1 request. Nothing broke it.");
});

function daemon(answers: Readonly<Record<string, () => unknown>>): ContextDaemon {
  const calls = { "session/list": () => ({ sessions: [{ sessionId }] }), ...answers };
  return { call: async (method: MethodName) => calls[method as keyof typeof calls]?.() } as unknown as ContextDaemon;
}

test("a part's name cannot move the cursor", () => {
  const { output } = memoryOutput({ isTerminal: true, columns: 80, env: { NO_COLOR: "1" } });
  const forged = { ...inspected, parts: { "x\u001b]52;c;eA==\u0007": on } };
  const shown = showLines({ found: forged, cache: report }, output).join("\n");
  for (const character of ["\u0007", "\u001b"]) expect(shown).not.toContain(character);
});

test("for programs it prints the methods' results in one document", async () => {
  const { output, stdout } = memoryOutput({ json: true });
  const all = daemon({
    "optimisation/inspect": () => inspected,
    "cache/report": () => report,
    "pruning/inspect": () => pruned,
    "pruning/stats": () => stats,
  });
  expect(await showContext(all, "last", output)).toBe(0);
  expect(JSON.parse(stdout())).toEqual({
    sessionId,
    ...inspected,
    cache: report,
    pruning: pruned,
    pruningStats: stats,
  });
});

test("if the part cache is off it is not asked, and if its pi has none the answer is null", async () => {
  const { output, stdout } = memoryOutput({ json: true });
  await showContext(daemon({ "optimisation/inspect": () => empty }), "last", output);
  expect(JSON.parse(stdout()).cache).toBeNull();
  const refuses = (kind: "unsupported_by_pi" | "session_not_found") =>
    daemon({
      "optimisation/inspect": () => inspected,
      "cache/report": () => {
        throw new WireError(kind, "No.");
      },
    });
  expect(await showContext(refuses("unsupported_by_pi"), "last", memoryOutput().output)).toBe(0);
  await expect(showContext(refuses("session_not_found"), "last", memoryOutput().output)).rejects.toThrow("No.");
});

test("with pruning on its blocks are shown, and a topic cannot move the cursor", () => {
  const { output } = memoryOutput();
  const from = showLines({ found: empty, blocks: pruned }, output);
  const at = from.findIndex((line) => line.startsWith("Blocks"));
  expect(from.slice(at, at + 4)).toEqual([
    "Blocks: 3, and 1 inside other blocks or a compaction. The newest, with tokens before and after:",
    "  b2  m002–m031     12,000 → 900  Parser[2J done",
    "  b3                12,000 → 900  Tests           opened",
    "  b4  m040–m050     12,000 → 900  Long            shortened",
  ]);
  const none: Pruned = { ...pruned, blocks: [], mode: "manual", off: "The tool is\nnot active." };
  const text = showLines({ found: empty, blocks: none, stats }, output).join("\n");
  expect(text).toContain(
    "Pruning is on; there are no blocks. The model only compresses when the user asks or the limit is reached.\nPruning is inactive now: The tool is | not active.\nPruning removed about 34,000 tokens from the context: 30,000 tokens ($0.0100) after losses in the provider's cache. This is an estimate.\n",
  );
});

test("with pruning off it is not mentioned; any other failure is reported", async () => {
  const refuses = (kind: "pruning_disabled" | "method_not_found" | "session_not_found") =>
    daemon({
      "optimisation/inspect": () => empty,
      "pruning/inspect": () => {
        throw new WireError(kind, "No.");
      },
    });
  for (const kind of ["pruning_disabled", "method_not_found"] as const) {
    const { output, stdout } = memoryOutput({ json: true });
    expect(await showContext(refuses(kind), "last", output)).toBe(0);
    expect(JSON.parse(stdout()).pruning).toBeNull();
  }
  await expect(showContext(refuses("session_not_found"), "last", memoryOutput().output)).rejects.toThrow("No.");
});
