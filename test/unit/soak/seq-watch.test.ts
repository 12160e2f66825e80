import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SeqWatch } from "../../soak/seq-watch.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

function resetAfter(watch: SeqWatch, after: number): void {
  watch.subscribe("a", "s-1", after);
  watch.gap("a", "s-1", { from: 1, to: 0, reason: "log_reset" });
  watch.told("a", "s-1", 1, "the first of the log");
}

test("a log may be reset after numbers that it used while the store failed, and after no others", () => {
  const watch = new SeqWatch();
  const works = watch.storeFails();
  vi.setSystemTime(2_000_000);
  works();
  resetAfter(watch, 1_500_000_000);
  expect(watch.violations).toEqual([]);
  for (const after of [12, 999_000_000, 2_001_000_000]) {
    resetAfter(watch, after);
    expect(watch.violations.splice(0).map(({ message }) => message)).toEqual([
      `a subscribed after ${after}, which is not a number of the log`,
      `a got 1 after ${after}`,
    ]);
  }
});

test("a delta may have another time after its daemon has ended, any other notification not", () => {
  const frame = (type: string, at: number): string =>
    JSON.stringify({ method: "session/event", params: { seq: 2, at, event: { type, text: "same" } } });
  const kindsOf = (type: string): readonly string[] => {
    const watch = new SeqWatch();
    for (const at of [1, 2]) watch.told("a", "s-1", 2, frame(type, at));
    return watch.violations.map(({ kind }) => kind);
  };
  expect(kindsOf("message_update")).toEqual([]);
  expect(kindsOf("message_end")).toEqual(["seq"]);
});
