import { expect, test } from "vitest";
import { Journal } from "../../../server/log/journal.ts";
import { StderrWatch } from "../../../server/log/stderr-watch.ts";
import { type Recorder, recorder } from "../../helpers/core.ts";
import { fakeClock } from "../../helpers/fake-clock.ts";
import { memoryLog } from "../../helpers/logs.ts";

/** A child whose stderr is in memory, and how often it was read. */
class FakeChild {
  written = Buffer.alloc(0);
  stderrFrom = 0;
  restoredAt: number | undefined;
  reads = 0;

  write(text: string | Buffer): void {
    this.written = Buffer.concat([this.written, Buffer.from(text)]);
  }

  stderrAfter(from: number, maxBytes: number): { bytes: Buffer; end: number } {
    this.reads += 1;
    const end = this.written.length;
    return { bytes: this.written.subarray(Math.max(from, end - maxBytes), end), end };
  }
}

function watched() {
  const journal = new Journal({ sessionId: "s-1", epoch: "e-1", log: memoryLog() });
  const clock = fakeClock();
  const watch = new StderrWatch(journal, clock);
  const follow = (id: string): Recorder => {
    const subscriber = recorder(id);
    watch.look();
    journal.subscribe(subscriber, { stderr: true });
    return subscriber;
  };
  return { journal, clock, watch, follow, child: new FakeChild() };
}

const textOf = ({ heard }: Recorder): string => heard.map(({ params }) => params.text).join("");
const omittedIn = ({ heard }: Recorder): number =>
  heard.reduce((sum, { params }) => sum + (params.omittedBytes ?? 0), 0);

test("a subscriber gets what is written from then on, and another one nothing", () => {
  const { journal, clock, watch, follow, child } = watched();
  const other = recorder("other");
  journal.subscribe(other);
  watch.attach(child);
  child.write("before ");
  const first = follow("first");
  child.write("one ");
  const second = follow("second");
  child.write("two");
  clock.advance(1_000);
  expect(first.heard.map(({ method, params }) => [method, params])).toEqual([
    ["session/stderr", { sessionId: "s-1", text: "one " }],
    ["session/stderr", { sessionId: "s-1", text: "two" }],
  ]);
  expect(textOf(second)).toBe("two");
  expect(other.heard).toEqual([]);
});

test("without a subscriber nothing is read and no timer waits", () => {
  const { journal, clock, watch, follow, child } = watched();
  watch.attach(child);
  child.write("unseen");
  for (let records = 0; records < 10; records += 1) watch.look();
  expect([child.reads, clock.waiting]).toEqual([0, 0]);
  follow("first");
  expect(clock.waiting).toBe(1);
  journal.unsubscribe("first");
  const { reads } = child;
  watch.look();
  expect([child.reads - reads, clock.waiting]).toEqual([0, 0]);
});

test("a subscriber of a session without a child gets all of the next one, and of each later one", () => {
  const { watch, follow, child } = watched();
  const first = follow("first");
  child.write("starting ");
  watch.attach(child);
  child.write("ending ");
  watch.childEnded(child);
  const next = new FakeChild();
  next.write("again");
  watch.attach(next);
  expect(textOf(first)).toBe("starting ending again");
});

test("the last words of a child are told, however much it wrote just before", () => {
  const { watch, follow, child } = watched();
  const first = follow("first");
  watch.attach(child);
  child.write("a".repeat(40_000));
  watch.look();
  child.write(`${"b".repeat(100_000)} why it ends`);
  watch.look();
  watch.childEnded(child);
  expect(textOf(first)).toMatch(/b why it ends$/);
  expect(textOf(first).length + omittedIn(first)).toBe(child.written.length);
});

test("what a child wrote at its start can be told to one, without what it wrote for another session", () => {
  const { watch, follow, child } = watched();
  child.write("for another session ");
  child.stderrFrom = child.written.length;
  child.write("at its start ");
  watch.attach(child);
  const first = follow("first");
  const second = follow("second");
  watch.tellStart("second");
  child.write("later");
  watch.look();
  expect([textOf(first), textOf(second)]).toEqual(["later", "at its start later"]);
});

test("a child that another session takes over begins there", () => {
  const [one, other] = [watched(), watched()];
  const [first, second] = [one.follow("first"), other.follow("second")];
  one.watch.attach(one.child);
  one.child.write("in the first ");
  one.watch.childEnded(one.child);
  other.watch.attach(one.child);
  one.child.write("in the second");
  other.watch.look();
  expect([textOf(first), textOf(second)]).toEqual(["in the first ", "in the second"]);
});

test("of a flood the newest is told, at most 64 KiB in a second, and how much is omitted", () => {
  const { clock, watch, follow, child } = watched();
  watch.attach(child);
  const first = follow("first");
  child.write("a".repeat(60_000));
  watch.look();
  child.write(`${"b".repeat(1_000_000)}the end`);
  watch.look();
  expect(textOf(first)).toBe("a".repeat(60_000));
  clock.advance(1_000);
  expect(textOf(first).length).toBe(60_000 + 65_536);
  expect(textOf(first).endsWith("the end")).toBe(true);
  expect(omittedIn(first)).toBe(child.written.length - 60_000 - 65_536);
});

test("characters stay whole, however they are cut", () => {
  const { clock, watch, follow, child } = watched();
  watch.attach(child);
  const first = follow("first");
  const text = "ä€😀x".repeat(20);
  for (const byte of Buffer.from(text)) {
    child.write(Buffer.from([byte]));
    watch.look();
  }
  expect(textOf(first)).toBe(text);
  clock.advance(1_000);
  for (const cut of ["", "x", "xy", "xyz"]) {
    child.write("😀".repeat(20_000) + cut);
    clock.advance(1_000);
  }
  expect(textOf(first)).not.toContain("\uFFFD");
  expect(omittedIn(first)).toBeGreaterThan(0);
  expect(Buffer.byteLength(textOf(first)) + omittedIn(first)).toBe(child.written.length);
});
