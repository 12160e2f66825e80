import { expect, test } from "vitest";
import type { DaemonLog, DaemonLogQuery } from "../../protocol/log-methods.ts";
import { createLog, recentLines } from "../../server/log.ts";
import { RecentLog } from "../../server/recent-log.ts";

const limits = {
  ...{ maxRecentLines: 10, maxRecentBytes: 100_000, maxReportLines: 3, maxReportBytes: 100_000 },
  ...{ maxLogLineBytes: 1_000, maxLogAnswerBytes: 10_000 },
};
/** The first place, as of a daemon that began at the second millisecond. */
const first = 2_000;

/** A log with lines of these texts, every third of which is a warning. */
function logOf(texts: readonly string[], others: Partial<typeof limits> = {}): RecentLog {
  const log = new RecentLog({ ...limits, ...others }, 2);
  for (const [index, msg] of texts.entries())
    log.add(`${JSON.stringify({ level: index % 3 === 2 ? 40 : 30, time: index, pid: 1, sessionId: "s", msg })}\n`);
  return log;
}

function words(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `line ${index}`);
}

function firstOf({ lines }: DaemonLog): number {
  return lines[0]?.seq ?? Number.NaN;
}

function messages({ lines }: DaemonLog): readonly string[] {
  return lines.map(({ message }) => message);
}

test("a line has its level by name, its time, its place and its other fields", () => {
  expect(logOf(words(3)).read({}).lines[2]).toEqual({
    seq: first + 2,
    time: 2,
    level: "warn",
    message: "line 2",
    fields: { sessionId: "s" },
  });
});

test("the newest lines come first, then those after the cursor, each once", () => {
  const log = logOf(words(6));
  const newest = log.read({ limit: 2 });
  expect([messages(newest), newest.hasMore]).toEqual([["line 4", "line 5"], true]);
  expect(log.read({ after: newest.cursor })).toEqual({ lines: [], cursor: newest.cursor, hasMore: false });
  log.add('{"level":50,"time":9,"msg":"later"}\n');
  expect(messages(log.read({ after: newest.cursor }))).toEqual(["later"]);
  const older = log.read({ before: firstOf(newest), limit: 3 });
  expect([messages(older), older.hasMore]).toEqual([["line 1", "line 2", "line 3"], true]);
  const oldest = log.read({ before: firstOf(older) });
  expect([messages(oldest), oldest.hasMore]).toEqual([["line 0"], false]);
});

test("a reader that goes on by the cursor gets every line of a level, whatever the limit", () => {
  const log = logOf(words(10));
  for (const limit of [1, 2, 3, 500]) {
    const got: string[] = [];
    let answer: DaemonLog = { lines: [], cursor: first - 1, hasMore: true };
    while (answer.hasMore) {
      answer = log.read({ after: answer.cursor, level: "warn", limit });
      got.push(...messages(answer));
    }
    expect(got).toEqual(["line 2", "line 5", "line 8"]);
  }
  expect(messages(log.read({ level: "warn", limit: 2 }))).toEqual(["line 5", "line 8"]);
  expect(log.read({ level: "error" })).toMatchObject({ lines: [], hasMore: false });
});

test("lines that are no longer there are counted, and those of another daemon are another reason", () => {
  const log = logOf(words(14));
  expect(messages(log.read({ after: first + 12 }))).toEqual(["line 13"]);
  expect(log.read({ after: first, limit: 1 })).toMatchObject({
    lines: [{ message: "line 4" }],
    missed: { reason: "dropped", lines: 3 },
  });
  for (const after of [0, first - 2, first + 14, Number.MAX_SAFE_INTEGER]) {
    const answer = log.read({ after });
    expect([after, answer.missed, messages(answer).length]).toEqual([after, { reason: "other_daemon" }, 10]);
  }
});

test.each<DaemonLogQuery>([
  { before: 0 },
  { before: first + 4 },
  { before: Number.MAX_SAFE_INTEGER, limit: 0 },
  { after: first + 9, before: first },
  { after: Number.MAX_SAFE_INTEGER, before: 0 },
])("the hostile places %j give no wrong line", (query) => {
  const answer = logOf(words(14)).read(query);
  expect(answer.lines).toEqual([]);
  expect(answer.cursor).toBeGreaterThanOrEqual(first - 1);
});

test("lines are bounded in number, in bytes, and in one answer", () => {
  const long = Array.from({ length: 100 }, (_, index) => `${index} ${"x".repeat(450)}`);
  expect(logOf(long).read({ limit: 500 }).lines).toHaveLength(10);
  expect(logOf(long, { maxRecentLines: 100, maxRecentBytes: 5_300 }).read({ limit: 500 }).lines).toHaveLength(10);
  const bounded = logOf(long, { maxRecentLines: 100, maxLogAnswerBytes: 1_600 });
  const answer = bounded.read({ after: first - 1, limit: 500 });
  expect([answer.lines.length, answer.hasMore]).toEqual([3, true]);
  expect(messages(bounded.read({ after: answer.cursor, limit: 1 }))[0]).toMatch(/^3 /);
  expect(logOf(long, { maxLogAnswerBytes: 1 }).read({}).lines).toHaveLength(1);
});

test("reports of parts inside pi take no other line's place, and what is dropped of them is counted where it was", () => {
  const log = logOf(["line 0", "line 1"]);
  const report = (facts: unknown): void => {
    log.add(`${JSON.stringify({ level: 30, time: 2, part: "p", facts, msg: "report of a helper part" })}\n`);
  };
  for (let count = 0; count < 50; count += 1) report({ count });
  report({ text: "y".repeat(2_000) });
  log.add(`${JSON.stringify({ level: 50, time: 3, msg: "the end", facts: "report of a helper part" })}\n`);
  const all = log.read({});
  expect(all.lines.map(({ message, fields }) => [message, fields?.["facts"]])).toEqual([
    ["line 0", undefined],
    ["line 1", undefined],
    ["report of a helper part", { count: 48 }],
    ["report of a helper part", { count: 49 }],
    ["report of a helper part", { text: `${"y".repeat(500)}…` }],
    ["the end", "report of a helper part"],
  ]);
  const missed: unknown[] = [];
  const got: string[] = [];
  let answer: DaemonLog = { lines: [], cursor: first - 1, hasMore: true };
  while (answer.hasMore) {
    answer = log.read({ after: answer.cursor, limit: 2 });
    got.push(...messages(answer));
    missed.push(answer.missed?.lines);
  }
  expect([got, missed]).toEqual([messages(all), [48, undefined, undefined]]);
  expect(messages(log.read({ before: all.lines[3]?.seq ?? 0, limit: 2 }))).toEqual([
    "line 1",
    "report of a helper part",
  ]);
});

test("a line that is too long is cut, keeps what fits, and says so", () => {
  const log = new RecentLog(limits, 2);
  const err = { type: "Error", message: "🙂".repeat(1_000), data: { __proto__: null, deep: ["y".repeat(9_999)] } };
  const many = Array.from({ length: 500 }, (_, index) => index);
  log.add(JSON.stringify({ level: 50, time: 1, pid: 1, many, err, sessionId: "s", msg: "m".repeat(600) }));
  const [line] = log.read({}).lines;
  expect(line).toMatchObject({ level: "error", time: 1, isCut: true, message: `${"m".repeat(500)}…` });
  expect(line?.fields).toEqual({ sessionId: "s" });
  const short = logOf([], { maxLogLineBytes: 4_000 });
  short.add(JSON.stringify({ level: 50, time: 1, err, msg: "short" }));
  expect(short.read({}).lines[0]?.fields).toEqual({
    err: { type: "Error", message: `${"🙂".repeat(250)}…`, data: { deep: [`${"y".repeat(500)}…`] } },
  });
});

test("the daemon's log keeps what it writes elsewhere, without tokens; other logs keep nothing", () => {
  const written: string[] = [];
  const log = createLog({ level: "info", lines: { write: (line) => written.push(line) } });
  log.child({ sessionId: "s" }).warn({ token: "t-1", err: new Error("broken") }, "said");
  log.debug("not this");
  const { lines } = recentLines(log).read({});
  expect(written).toHaveLength(1);
  expect(lines).toMatchObject([
    { level: "warn", message: "said", fields: { sessionId: "s", err: { message: "broken" } } },
  ]);
  expect(JSON.stringify(lines)).not.toContain("t-1");
});
