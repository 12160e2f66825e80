import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WireError } from "../../../client/browser.ts";
import type { DaemonLogQuery } from "../../../protocol/log-methods.ts";
import { RecentLog } from "../../../server/recent-log.ts";
import { ReadLog } from "../../../web/state/daemon-log.ts";
import { FakeDaemon } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A daemon whose log has so many lines, every tenth of them a warning. */
function fixture(count: number, maxRecentLines = 5_000) {
  const kept = new RecentLog(
    {
      maxRecentLines,
      maxRecentBytes: 1_000_000,
      maxReportLines: 9,
      maxReportBytes: 999,
      maxLogLineBytes: 8_000,
      maxLogAnswerBytes: 256_000,
    },
    1,
  );
  let written = 0;
  const write = (more: number): void => {
    for (const end = written + more; written < end; written += 1)
      kept.add(JSON.stringify({ level: written % 10 === 0 ? 40 : 30, time: written, msg: `line ${written}` }));
  };
  write(count);
  const daemon = new FakeDaemon();
  daemon.on("daemon/log", (query: DaemonLogQuery) => kept.read(query));
  const page = new FakePage();
  const log = new ReadLog({ daemon, page, titleOf: (sessionId) => sessionId });
  const shown = () => log.rows.value?.map((row) => (row.kind === "gap" ? `gap ${row.lines}` : row.line.message));
  return { daemon, page, log, write, shown };
}

test("the log is followed while the page is visible, and only then", async () => {
  const { daemon, page, log, write, shown } = fixture(3);
  expect(daemon.calls).toEqual([]);
  const stop = log.follow();
  await vi.advanceTimersByTimeAsync(0);
  write(2);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(shown()).toEqual(["line 0", "line 1", "line 2", "line 3", "line 4"]);
  const { rows } = log;
  const before = rows.value;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(rows.value).toBe(before);
  page.hide(true);
  const asked = daemon.calls.length;
  write(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(daemon.calls).toHaveLength(asked);
  page.hide(false);
  await vi.advanceTimersByTimeAsync(0);
  expect(shown()?.at(-1)).toBe("line 5");
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(daemon.calls).toHaveLength(asked + 1);
  expect(vi.getTimerCount()).toBe(0);
});

test("older lines come before the shown ones, until there are none", async () => {
  const { log, shown } = fixture(250);
  log.follow()();
  await vi.advanceTimersByTimeAsync(0);
  expect([shown()?.[0], log.hasOlder.value]).toEqual(["line 150", true]);
  await log.older();
  await Promise.all([log.older(), log.older()]);
  expect(shown()).toEqual(Array.from({ length: 250 }, (_, index) => `line ${index}`));
  expect(log.hasOlder.value).toBe(false);
});

test("the filter shows warnings and errors alone, and what it leaves out never comes late", async () => {
  const { daemon, log, shown } = fixture(45);
  const stop = log.follow();
  log.setFilter("trouble");
  await vi.advanceTimersByTimeAsync(0);
  expect(shown()).toEqual(["line 0", "line 10", "line 20", "line 30", "line 40"]);
  expect(log.hasOlder.value).toBe(false);
  const late = log.older();
  log.setFilter("all");
  await late;
  await vi.advanceTimersByTimeAsync(0);
  expect(shown()).toHaveLength(45);
  expect(daemon.methods).toEqual(["daemon/log"]);
  stop();
});

test("lines that the daemon no longer has are said at their place", async () => {
  const { page, log, write, shown } = fixture(10, 20);
  const stop = log.follow();
  await vi.advanceTimersByTimeAsync(0);
  page.hide(true);
  write(50);
  page.hide(false);
  await vi.advanceTimersByTimeAsync(0);
  expect(shown()?.slice(9, 12)).toEqual(["line 9", "gap 30", "line 40"]);
  stop();
});

test("at most a thousand lines are shown, and the others are older ones", async () => {
  const { log, write, shown } = fixture(100);
  const stop = log.follow();
  await vi.advanceTimersByTimeAsync(0);
  write(1_200);
  await vi.advanceTimersByTimeAsync(6_000);
  expect([shown()?.length, shown()?.[0], shown()?.at(-1)]).toEqual([1_000, "line 300", "line 1299"]);
  expect(log.hasOlder.value).toBe(true);
  // A person who reads older lines keeps them.
  await log.older();
  write(500);
  await vi.advanceTimersByTimeAsync(6_000);
  expect([shown()?.length, shown()?.[0], shown()?.at(-1)]).toEqual([1_600, "line 200", "line 1799"]);
  stop();
});

test("a refusal has the daemon's words, and the log goes on after it", async () => {
  const { daemon, log, shown } = fixture(2);
  let isLimited = true;
  const kept = new RecentLog({
    maxRecentLines: 9,
    maxRecentBytes: 999,
    maxReportLines: 9,
    maxReportBytes: 999,
    maxLogLineBytes: 99,
    maxLogAnswerBytes: 99,
  });
  daemon.on("daemon/log", (query) => {
    if (isLimited) throw new WireError("forbidden", "The token does not allow it.", { limit: "labels" });
    return kept.read(query);
  });
  const stop = log.follow();
  await vi.advanceTimersByTimeAsync(0);
  expect([log.refused.value, shown()]).toEqual(["The token does not allow it.", undefined]);
  isLimited = false;
  await vi.advanceTimersByTimeAsync(2_000);
  expect([log.refused.value, shown()]).toEqual(["", []]);
  stop();
});
