import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { estimateUsd } from "../../../bench/lib/lean-check/check.ts";
import { countsOf, type SessionOutcome } from "../../../bench/lib/lean-check/session.ts";
import { type Files, makeTask, type TaskName, taskNames, writeFiles } from "../../../bench/lib/lean-check/tasks.ts";
import { type Pair, signTest, verdictOf } from "../../../bench/lib/lean-check/verdict.ts";

const size = { seed: 3, scale: 0.1 };

/** What the judge says about a directory with the task's files and these. */
async function judged(name: TaskName, result: Files): Promise<string | undefined> {
  const task = makeTask(name, size);
  const directory = mkdtempSync(join(tmpdir(), "lean-check-"));
  try {
    writeFiles(directory, { ...task.files, ...result });
    return await task.judge(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The right result with one of its digits or letters changed. */
function nearly(name: TaskName): Files {
  const [path, text] = Object.entries(makeTask(name, size).solution)[0] ?? ["", ""];
  switch (name) {
    case "detail":
      return { [path]: text.replace(/\d/, (digit) => String((Number(digit) + 1) % 10)) };
    case "edit":
      // Values of four digits are demanded ones.
      return { [path]: text.replace(/": \d{4}(?=,)/, '": 9') };
    case "fault":
      return { [path]: text.replace(/sum = value \+ (\d+)/, (_, added) => `sum = value + ${Number(added) + 1}`) };
    case "rename":
      return { ...makeTask(name, size).solution, [path]: text.replace("return id", "return  id") };
    case "log":
      return { [path]: `${text.trim()}0` };
  }
}

describe.each(taskNames)("the judge of the task %s", (name) => {
  test("accepts the right result", async () => {
    expect(await judged(name, makeTask(name, size).solution)).toBeUndefined();
  });

  test("refuses a result that is nearly right, and one that is missing", async () => {
    expect(await judged(name, nearly(name))).toEqual(expect.any(String));
    expect(await judged(name, {})).toEqual(expect.any(String));
  });
});

test("a task is the same for the same seed, another one for another seed, and has long context at full size", () => {
  for (const name of taskNames) {
    expect(makeTask(name, size)).toMatchObject(JSON.parse(JSON.stringify(makeTask(name, size))));
    expect(makeTask(name, { ...size, seed: 4 }).files).not.toEqual(makeTask(name, size).files);
    const { files, expected } = makeTask(name, { seed: 1, scale: 1 });
    const bytes = Object.values(files).reduce((sum, text) => sum + text.length, 0);
    expect(bytes, name).toBeGreaterThan(350_000);
    // Above, bare pi would need a summary where the window has 200,000 tokens.
    expect(expected.contextTokens, name).toBeLessThan(150_000);
  }
});

test("a program that the model has changed reads nothing but the task's files, and has no environment", async () => {
  const path = "src/settings.mjs";
  const reading = `import { readFileSync } from "node:fs"; export const settings = readFileSync("/etc/passwd", "utf8");`;
  expect(await judged("edit", { [path]: reading })).toMatch(/does not run: .*Access to this API has been restricted/);
  expect(await judged("edit", { [path]: `export const settings = process.env;` })).toMatch(/returns \{\}/);
});

const outcome = (more: Partial<SessionOutcome> = {}): SessionOutcome => ({
  ...{ ended: "done", fault: undefined, usd: 1, requests: 1, tokens: 1, recalls: 0, readAgain: 0, removed: 1 },
  ...{ compactions: 0, minutes: 1, ...more },
});
const pairs = (count: number, bare: Partial<SessionOutcome> = {}, lean: Partial<SessionOutcome> = {}): Pair[] =>
  Array.from({ length: count }, () => ({
    ...{ model: "a/b", task: "detail", bare: outcome(bare), lean: outcome({ usd: 0.5, ...lean }) },
  }));
const wrong = { fault: "wrong" };

describe("the verdict", () => {
  test.each([
    ["yes", "lean solves as many and costs less", pairs(30)],
    ["undecided", "there are too few pairs", pairs(29)],
    ["yes", "three more losses than wins are chance", [...pairs(27), ...pairs(3, {}, wrong)]],
    ["no", "four more losses than wins are not", [...pairs(26), ...pairs(4, {}, wrong)]],
    ["yes", "wins outweigh losses", [...pairs(20), ...pairs(5, {}, wrong), ...pairs(5, wrong)]],
    ["no", "lean costs as much", pairs(30, {}, { usd: 1 })],
    ["undecided", "bare pi solves less than half", [...pairs(14), ...pairs(16, wrong, wrong)]],
    ["undecided", "lean removed nothing in most pairs", [...pairs(14), ...pairs(16, {}, { removed: 0 })]],
    ["yes", "a compaction counts as removed", [...pairs(14), ...pairs(16, {}, { removed: 0, compactions: 1 })]],
    ["no", "sessions of lean that fail are not solved", [...pairs(26), ...pairs(4, {}, { ...wrong, ended: "error" })]],
  ] as const)("is %s if %s", (decision, _, all) => {
    expect(verdictOf(all).decision).toBe(decision);
  });

  test("leaves out pairs in which both sessions failed", () => {
    const failed = { ...wrong, ended: "error" } as const;
    expect(verdictOf([...pairs(29), ...pairs(1, failed, failed)])).toMatchObject({ decision: "undecided", pairs: 29 });
  });

  test("uses the one-sided sign test", () => {
    expect([signTest(0, 0), signTest(3, 0), signTest(4, 0), signTest(0, 4), signTest(5, 2)]).toEqual([
      ...[1, 0.125, 0.0625, 1],
      29 / 128,
    ]);
  });
});

test("a session's file is counted: recalls, repeated reads, removed results and compactions", () => {
  const calls = (...made: readonly (readonly [string, unknown])[]) => ({
    message: {
      role: "assistant",
      content: [{ type: "text" }, ...made.map(([name, args]) => ({ type: "toolCall", name, arguments: args }))],
    },
  });
  const entries = [
    calls(["read", { path: "a" }], ["read", { path: "a", offset: 2 }], ["bash", { command: "ls" }]),
    calls(["read", { path: "a" }], ["recall", { id: "r001" }], ["bash", { command: "ls" }]),
    { message: { role: "toolResult", content: [], details: { "pi-rpcd.recall": { id: "r001" } } } },
    { type: "custom", customType: "pi-rpcd.recall", data: { records: [{}, {}] } },
    { type: "compaction" },
    { message: { role: "user", content: "text" } },
  ];
  const file = entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
  expect(countsOf(file)).toEqual({ recalls: 1, readAgain: 1, removed: 3, compactions: 1 });
});

test("the estimate adds what is read from the cache, what is written to it, and the output", () => {
  const task = { ...makeTask("log", size), expected: { requests: 10, contextTokens: 100_000 } };
  const prices = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
  expect(estimateUsd(task, prices)).toBeCloseTo(0.15 + 0.375 + 0.03, 6);
  expect(estimateUsd(task, { ...prices, cacheRead: 0 })).toBeCloseTo(1.5 + 0.375 + 0.03, 6);
});
