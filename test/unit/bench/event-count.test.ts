import { expect, test } from "vitest";
import { EventCount, isMerged } from "../../../bench/lib/event-count.ts";

const sessionId = "01a205b7-2cfe-7455-98b7-e48a6b6d9bad";
const frame = (params: object): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "session/event", params: { sessionId, ...params } }));
const told = ({ accounted, merged, lost, misordered }: EventCount) => ({ accounted, merged, lost, misordered });

test("every number counts once: alone, merged, in a gap, or missing", () => {
  const count = new EventCount();
  for (const seq of [5, 6]) count.event({ sessionId, seq });
  expect(told(count)).toEqual({ accounted: 2, merged: 0, lost: 0, misordered: 0 });
  count.event({ sessionId, firstSeq: 7, seq: 10 });
  expect(told(count)).toEqual({ accounted: 6, merged: 3, lost: 0, misordered: 0 });
  count.gap({ sessionId, from: 11, to: 12 });
  count.event({ sessionId, seq: 13 });
  expect(told(count)).toEqual({ accounted: 9, merged: 3, lost: 2, misordered: 0 });
  count.event({ sessionId, seq: 15 });
  expect(told(count)).toEqual({ accounted: 11, merged: 3, lost: 3, misordered: 0 });
});

test("a number that comes again is misordered, and sessions have their own numbers", () => {
  const count = new EventCount();
  count.event({ sessionId, seq: 5 });
  count.event({ sessionId: "other", seq: 1 });
  count.event({ sessionId, seq: 5 });
  expect(told(count)).toEqual({ accounted: 2, merged: 0, lost: 0, misordered: 1 });
});

test("a merged envelope is recognised without parsing, and its text is not taken for one", () => {
  expect(isMerged(frame({ seq: 9, firstSeq: 7, event: {} }))).toBe(true);
  expect(isMerged(frame({ seq: 9, event: { type: "message_update", delta: '"firstSeq":7' } }))).toBe(false);
});
