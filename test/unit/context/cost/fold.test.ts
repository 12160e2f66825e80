import { expect, test } from "vitest";
import { CostFold, maxCheckpoints, maxPhases } from "../../../../context/cost/fold.ts";
import { COST_MARK_TYPE, type CostMark, markData } from "../../../../context/cost/marks.ts";
import { reportOf } from "../../../../context/cost/report.ts";
import { prepareContext } from "../../../../context/document/prepare.ts";
import { sessionEntries } from "../../../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../../../protocol/context-limits.ts";
import { unchecked } from "../../../helpers/partial.ts";
import { sessionTarget } from "../../../helpers/pi-session.ts";

const rules = { budgetUsd: null, onBudget: "warn", warnAt: 0.8 } as const;
let ids = 0;

const used = (output: number, total = output / 1_000) => ({
  input: 0,
  output,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 999_999,
  cost: { input: 0, output: total, cacheRead: 0, cacheWrite: 0, total },
});
const entry = (fields: object, second = 0) => ({
  id: `e${++ids}`,
  parentId: null,
  timestamp: new Date(1_000_000 + second * 1_000).toISOString(),
  ...fields,
});
const assistant = (output: number, more: object = {}, second = 0) =>
  entry(
    {
      type: "message",
      ...{
        message: { role: "assistant", provider: "p", model: "m", stopReason: "stop", usage: used(output), ...more },
      },
    },
    second,
  );
const mark = (given: CostMark, second = 0) =>
  entry({ type: "custom", customType: COST_MARK_TYPE, data: markData(given) }, second);
const removal = (targetId: string) => entry({ type: "context_edit", targetId, replacement: null });

function folded(...entries: readonly unknown[]): CostFold {
  const fold = new CostFold();
  for (const one of entries) fold.add(one);
  return fold;
}

const outputs = (sums: Readonly<Record<string, { readonly output: number }>>) =>
  Object.fromEntries(Object.entries(sums).map(([name, { output }]) => [name, output]));

test("each kind of entry counts once, under its model and its source, whatever branch it is on", () => {
  const fold = folded(
    { type: "session", id: "s", usage: used(1) },
    entry({ type: "message", message: { role: "user", content: "Hi.", usage: used(1) } }),
    assistant(10),
    assistant(20, { responseModel: "routed" }),
    entry({ type: "message", message: { role: "toolResult", usage: used(30), details: { usage: used(1) } } }),
    entry({ type: "usage", kind: "cache_warm", provider: "p", model: "m", usage: used(40) }),
    entry({ type: "compaction", summary: "", usage: used(50) }),
    entry({ type: "branch_summary", summary: "", usage: used(60) }),
    entry({ type: "compaction", summary: "Without." }),
    entry({ type: "custom", customType: "other", data: { usage: used(1) }, usage: used(1) }),
  );
  const report = reportOf(fold, rules, 0);
  expect(outputs(report.bySource)).toEqual({
    assistant: 30,
    tool: 30,
    cache_warm: 40,
    compaction: 50,
    branch_summary: 60,
  });
  expect(outputs(report.byModel)).toEqual({ "p/m": 50, "p/routed": 20, unknown: 140 });
  expect(report.total).toMatchObject({ output: 210, totalTokens: 210 });
  expect(report.total.cost.total).toBeCloseTo(0.21, 12);
  expect(report.requests).toBe(5);
});

test("an attempt is discarded if it failed, was aborted, or was removed before the next answer", () => {
  const cut = assistant(4, { stopReason: "length" });
  const used1 = assistant(8);
  const fold = folded(
    assistant(1, { stopReason: "error" }),
    assistant(2, { stopReason: "aborted" }),
    cut,
    removal(cut.id),
    used1,
    assistant(16),
    // An answer that is removed later was used until then.
    removal(used1.id),
    entry({ type: "context_edit", targetId: "elsewhere", replacement: null }),
  );
  expect(outputs(fold.whole.bySource())).toEqual({ discarded: 7, assistant: 24 });
  expect(fold.whole.total.output).toBe(31);
  const edited = assistant(1);
  const kept = folded(edited, entry({ type: "context_edit", targetId: edited.id, replacement: { content: [] } }));
  expect(outputs(kept.whole.bySource())).toEqual({ assistant: 1 });
});

test("a summary that was paid for and not used is reported, and in no sum", () => {
  const fold = folded(assistant(1), mark({ kind: "failedSummary", usage: used(5), model: "p/m" }));
  expect(outputs(fold.whole.bySource())).toEqual({ assistant: 1, compaction_failed: 5 });
  expect(fold.whole.total.output).toBe(1);
  expect(outputs(fold.whole.byModel())).toEqual({ "p/m": 1 });
});

test("the usage of a delegated session is taken once, from the tool result that reports it", () => {
  const delegated = {
    role: "toolResult",
    toolName: "delegate",
    usage: used(7),
    details: { usage: used(7), sessionFile: "/child.jsonl", messages: [{ role: "assistant", usage: used(7) }] },
  };
  const parent = folded(assistant(1), entry({ type: "message", message: delegated }));
  const child = folded({ type: "session", id: "c", parentSession: "/parent.jsonl" }, assistant(7));
  expect(parent.whole.total.output).toBe(8);
  expect(parent.whole.requests).toBe(1);
  expect(child.whole.total.output).toBe(7);
});

test("imported history counts nothing: neither tokens, USD nor requests", () => {
  const usage = used(1_000);
  const document = {
    format: "pi-rpcd/context",
    version: 1,
    items: [
      { role: "user", content: [{ type: "text", text: "Hello." }] },
      { role: "assistant", content: [{ type: "text", text: "Hi." }], meta: { usage, provider: "p", model: "m" } },
    ],
  };
  const prepared = prepareContext(document, { budget: null }, sessionTarget, defaultContextLimits);
  const lines = [...sessionEntries(prepared, { id: "s", timestamp: 1_000, cwd: "/" })];
  expect(lines.map(({ type }) => type)).toEqual(["session", "custom", "message", "message"]);
  const fold = folded(...lines);
  expect(reportOf(fold, rules, 0)).toMatchObject({ requests: 0, byModel: {}, bySource: {}, estimated: false });
});

test("deltas of checkpoints and phases add up to the total", () => {
  const fold = folded(
    assistant(1, {}, 1),
    mark({ kind: "phaseStart", label: "outer" }, 2),
    assistant(2),
    mark({ kind: "phaseStart", label: "inner" }, 3),
    assistant(4),
    mark({ kind: "checkpoint", label: "half" }, 4),
    assistant(8),
    mark({ kind: "phaseEnd", label: "outer" }, 6),
    assistant(16),
    mark({ kind: "checkpoint", label: "end" }, 7),
  );
  const told = fold.checkpoints.map(({ event, detail }) => [
    event.label,
    event.deltaTokens.output,
    event.cumulativeTokens.output,
    detail.phasePath,
    detail.wallMs,
  ]);
  expect(told).toEqual([
    ["before outer", 1, 1, [], 1_000],
    ["before inner", 2, 3, ["outer"], 1_000],
    ["half", 4, 7, ["outer", "inner"], 1_000],
    ["outer", 8, 15, ["outer", "inner"], 2_000],
    ["end", 16, 31, [], 1_000],
  ]);
  const { phases } = reportOf(fold, rules, Number.MAX_SAFE_INTEGER);
  expect(
    phases.map(({ path, usage, isOpen, wallMs, requests }) => [path, usage.output, isOpen, wallMs, requests]),
  ).toEqual([
    [["outer"], 14, false, 4_000, 3],
    [["outer", "inner"], 12, false, 3_000, 2],
  ]);
});

test("the latest budget applies, is reported once for each level, and a phase's budget ends with it", () => {
  const configured = { ...rules, budgetUsd: 0.01 };
  const states = (fold: CostFold) =>
    fold.budgets(configured).map(({ phase, usd, onBudget, level, told }) => [phase?.label, usd, onBudget, level, told]);
  const fold = folded(assistant(7));
  expect(states(fold)).toEqual([[undefined, 0.01, "warn", undefined, undefined]]);
  fold.add(assistant(1));
  expect(states(fold)).toEqual([[undefined, 0.01, "warn", "warning", undefined]]);
  fold.add(mark({ kind: "reached", usd: 0.01, level: "warning" }));
  fold.add(assistant(2));
  expect(states(fold)).toEqual([[undefined, 0.01, "warn", "spent", "warning"]]);
  fold.add(mark({ kind: "budget", usd: 1, onBudget: "stop" }));
  fold.add(mark({ kind: "phaseStart", label: "a", budget: { usd: 0.002 } }));
  fold.add(assistant(3));
  expect(states(fold)).toEqual([
    [undefined, 1, "stop", undefined, undefined],
    ["a", 0.002, "warn", "spent", undefined],
  ]);
  fold.add(mark({ kind: "reached", label: "a", usd: 0.002, level: "spent" }));
  expect(states(fold)[1]?.[4]).toBe("spent");
  fold.add(mark({ kind: "phaseEnd", label: "a" }));
  fold.add(mark({ kind: "budget", usd: null }));
  expect(states(fold)).toEqual([]);
});

test("a missing price is reported, unless the provider says that it costs nothing", () => {
  expect(folded(assistant(1, { usage: used(1, 0) })).whole.isEstimated).toBe(true);
  const free = { ...used(1, 0), cost: { ...used(1, 0).cost, totalFromProvider: true } };
  expect(folded(assistant(1, { usage: free })).whole.isEstimated).toBe(false);
});

test("entries of a file may contain anything, and the result stays bounded", () => {
  const strange = [
    null,
    7,
    "text",
    [],
    {},
    { type: "message" },
    { type: "message", message: null },
    { type: "message", message: { role: "assistant" } },
    { type: "message", message: { role: "assistant", usage: { input: "9", output: Number.NaN, cost: 3 } } },
    { type: "usage", usage: { output: 1e300, cost: { total: -1e300 } } },
    { type: "usage", usage: [1] },
    { type: "context_edit" },
    ...["", " ", "x".repeat(121), 7, undefined].map((label) => mark(unchecked({ kind: "phaseStart", label }))),
    ...[0, -1, Number.NaN, 2e6, "1"].map((usd) => mark(unchecked({ kind: "budget", usd }))),
    entry({ type: "custom", customType: COST_MARK_TYPE, data: { v: 2, kind: "checkpoint", label: "later" } }),
    entry({ type: "custom", customType: COST_MARK_TYPE, data: { v: 1, kind: "__proto__", label: "x" } }),
    mark({ kind: "phaseEnd", label: "never begun" }),
    { ...assistant(0), timestamp: "never" },
  ];
  const fold = folded(...strange);
  expect(reportOf(fold, rules, 0)).toMatchObject({
    requests: 0,
    phases: [],
    checkpoints: [],
    total: { totalTokens: 0 },
  });

  for (let at = 0; at < 40; at++) fold.add(mark({ kind: "phaseStart", label: "deep" }));
  expect(fold.openPhases).toHaveLength(32);
  fold.add(mark({ kind: "phaseStart", label: "deep" }));
  for (let at = 0; at < maxPhases + 10; at++) {
    fold.add(mark({ kind: "phaseEnd", label: "deep" }));
    fold.add(mark({ kind: "phaseStart", label: "deep" }));
    fold.add(assistant(1, { model: `m${at}` }));
  }
  const report = reportOf(fold, rules, 0);
  expect(report.phases).toHaveLength(maxPhases);
  expect(report.checkpoints).toHaveLength(maxCheckpoints);
  expect(Object.keys(report.byModel)).toHaveLength(256);
  expect(report.total.output).toBe(maxPhases + 10);
  expect(report.byModel["other"]?.output).toBe(maxPhases + 10 - 255);
});
