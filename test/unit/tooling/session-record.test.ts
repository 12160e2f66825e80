import { expect, test } from "vitest";
import { SessionRecord } from "../../helpers/session-record.ts";

// What the tests of live restore rest on: each fault that they look for is found in a record that has it.

const records = ["agent_start", "message_start", "message_update", "message_end", "agent_settled"].map(
  (type, n) => `{"type":"${type}","n":${n}}`,
);

function envelope(seq: number, event: string, at = 1_000 + seq): string {
  return `{"jsonrpc":"2.0","method":"session/event","params":{"sessionId":"s","seq":${seq},"at":${at},"generation":1,"event":${event}}}`;
}

function notification(seq: number, method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params: { sessionId: "s", seq, at: 1_000 + seq, ...params } });
}

/** A record in which one client got all that pi wrote. */
function complete(events = records): SessionRecord {
  const record = new SessionRecord("s");
  for (const [n, event] of events.entries()) record.told("one", n + 1, envelope(n + 1, event));
  return record;
}

function kinds(record: SessionRecord): string[] {
  record.checkNumbers();
  record.checkEvents(records);
  record.checkReceipts();
  record.checkStates();
  return [...new Set(record.faults.map(({ kind }) => kind))];
}

const without = (n: number): string[] => records.filter((_, index) => index !== n);

test("a record of everything has no faults, also when a second client gets it", () => {
  const record = complete();
  for (const [n, event] of records.entries()) record.told("two", n + 1, envelope(n + 1, event));
  expect(kinds(record)).toEqual([]);
});

test.each([1, 2, 4])("an event that pi wrote and that no client got is found (%s)", (n) => {
  expect(kinds(complete(without(n)))).toEqual(["events"]);
});

test("an event that came twice, or in another order, is found", () => {
  expect(kinds(complete([...records.slice(0, 3), ...records.slice(2)]))).toEqual(["events"]);
  const [first, second, ...rest] = records as [string, string, ...string[]];
  expect(kinds(complete([second, first, ...rest]))).toEqual(["events"]);
});

test("a number with two meanings is found, and another time of anything but a delta", () => {
  const record = complete();
  record.told("two", 4, envelope(4, '{"type":"message_end","n":9}'));
  expect(kinds(record)).toEqual(["bytes"]);
  const later = complete();
  later.told("two", 3, envelope(3, records[2] as string, 5));
  expect(kinds(later)).toEqual([]);
  expect(later.deltasWithOtherTimes).toBe(1);
  later.told("two", 4, envelope(4, records[3] as string, 5));
  expect(kinds(later)).toEqual(["time"]);
});

test("a number that nobody got is found, unless a gap or a merged envelope has it", () => {
  const holed = (cover: (record: SessionRecord) => void): string[] => {
    const record = new SessionRecord("s");
    for (const [n, event] of records.entries()) if (n !== 2) record.told("one", n + 1, envelope(n + 1, event));
    cover(record);
    return kinds(record);
  };
  expect(holed(() => {})).toEqual(["order", "events"]);
  expect(holed((record) => record.gap("one", { from: 3, to: 3, reason: "slow_reader" }, false))).toContain("gap");
  expect(holed((record) => record.merged(3, 3))).toEqual([]);
});

test("a receipt that is told twice is found", () => {
  const told: readonly (readonly [string, object])[] = [
    ["prompt/updated", { prompt: { promptId: "p", state: "inserted" } }],
    ["delivery/updated", { delivery: { deliveryId: "d", state: "held", history: [] } }],
    ["run/ended", { runId: "r", outcome: "settled" }],
    ["dialog/resolved", { dialogId: "q" }],
  ];
  for (const [method, params] of told) {
    const record = complete();
    record.told("one", 6, notification(6, method, params));
    expect(kinds(record)).toEqual([]);
    record.told("one", 7, notification(7, method, params));
    expect(kinds(record)).toEqual(["receipt"]);
  }
});

test("the end of a child or of its run is found", () => {
  const record = complete();
  record.told("one", 6, notification(6, "session/updated", { session: { state: "hibernated" } }));
  record.told("one", 7, notification(7, "run/ended", { runId: "r", outcome: "interrupted" }));
  expect(kinds(record)).toEqual(["state"]);
  expect(record.faults).toHaveLength(2);
});
