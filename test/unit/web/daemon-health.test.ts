import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WireError } from "../../../client/browser.ts";
import { ReadHealth } from "../../../web/state/daemon-health.ts";
import { FakeDaemon } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const checks = { store: "open", pi: "found", eventLoopDelayMs: 0, lostLogLines: 0 } as const;

function fixture(): { daemon: FakeDaemon; page: FakePage; health: ReadHealth } {
  const daemon = new FakeDaemon();
  const page = new FakePage();
  daemon.answer("daemon/ready", { ready: true, ...checks });
  return { daemon, page, health: new ReadHealth({ daemon, page, titleOf: (sessionId) => sessionId }) };
}

test("is read again while the page is visible, and only then", async () => {
  const { daemon, page, health } = fixture();
  const stop = health.watch();
  const readings = (): number => daemon.calls.filter(({ method }) => method === "daemon/ready").length;
  await vi.advanceTimersByTimeAsync(11_000);
  expect(readings()).toBe(3);
  expect(health.ready.value).toMatchObject({ kind: "known", value: { reasons: [] } });
  page.hide(true);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(readings()).toBe(3);
  page.hide(false);
  await vi.advanceTimersByTimeAsync(0);
  expect(readings()).toBe(4);
  stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(readings()).toBe(4);
  expect(vi.getTimerCount()).toBe(0);
  // Counters only by a press: a reading begins a measurement.
  expect(daemon.methods).toEqual(["daemon/info", "daemon/ready"]);
});

test("has every reason why the daemon is not ready", async () => {
  const { daemon, health } = fixture();
  const reasons = ["The store cannot be written: ENOSPC.", "/pi no longer exists."];
  daemon.on("daemon/ready", () => {
    throw new WireError("not_ready", reasons.join(" "), { reasons, checks: { ...checks, pi: "missing" } });
  });
  health.watch()();
  await vi.advanceTimersByTimeAsync(0);
  expect(health.ready.value.kind).toBe("asking");
  const stop = health.watch();
  await vi.advanceTimersByTimeAsync(0);
  stop();
  expect(health.ready.value).toEqual({ kind: "known", value: { reasons, checks: { ...checks, pi: "missing" } } });
});

test("says why counters are refused", async () => {
  const { daemon, health } = fixture();
  daemon.on("daemon/metrics", () => {
    throw new WireError("forbidden", "The token is limited to some sessions.", { limit: "sessions" });
  });
  await health.readMetrics();
  expect(health.metrics.value).toEqual({ kind: "refused", words: "The token is limited to some sessions." });
});
