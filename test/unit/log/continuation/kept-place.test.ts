import { describe, expect, test } from "vitest";
import { KeptPlace } from "../../../../server/log/kept-place.ts";
import type { LogPlace } from "../../../../server/store/children.ts";

const options = { maxBytes: 4_000_000, keepMs: 10_000 };
const start: LogPlace = { offset: 0, seq: 0 };
/** Each record has 100 bytes and a number. */
const at = (n: number): LogPlace => ({ offset: n * 100, seq: n });
const record = (type: string): Buffer => Buffer.from(`{"type":"${type}","text":"x"}`);

/** A place that was asked for each second while a record came every 100 ms. */
function placeAfter(seconds: number, kept = new KeptPlace(start, options)): LogPlace {
  let place = start;
  for (let second = 0; second <= seconds; second += 1)
    place = kept.place(at(second * 10), at(second * 10), second * 1_000);
  return place;
}

describe("the place from which output is kept", () => {
  test("is the one of ten seconds ago", () => {
    expect([placeAfter(9), placeAfter(10), placeAfter(30)]).toEqual([start, start, at(200)]);
  });

  test("is reached while nothing is written", () => {
    const kept = new KeptPlace(start, options);
    kept.place(at(5), at(5), 0);
    expect(kept.place(at(5), at(5), 10_000)).toEqual(at(5));
  });

  test.each([
    ["message", ["message_start"], ["message_end"]],
    ["tool call", ["tool_execution_start"], ["tool_execution_end"]],
    [
      "tool call of several",
      ["tool_execution_start", "tool_execution_start"],
      ["tool_execution_end", "tool_execution_end"],
    ],
    ["message of a run that ended", ["message_start"], ["agent_end"]],
  ])("is before the oldest open %s", (_, starts, ends) => {
    const kept = new KeptPlace(start, options);
    for (const [i, type] of starts.entries()) kept.note(record(type), at(7 + i));
    kept.note(record("queue_update"), at(9));
    expect(placeAfter(30, kept)).toEqual(at(7));
    for (const [i, type] of ends.entries()) {
      expect(kept.place(at(310 + i), at(310 + i), 31_000)).toEqual(at(7));
      kept.note(record(type), at(310 + i));
    }
    expect(kept.place(at(320), at(320), 32_000)).toEqual(at(220));
  });

  test("moves on when too much is kept, also in an open message", () => {
    const kept = new KeptPlace(start, { ...options, maxBytes: 1_000 });
    kept.note(record("message_start"), at(1));
    expect(kept.place(at(10), at(10), 0)).toEqual(start);
    expect(kept.place(at(20), at(20), 1_000)).toEqual(at(10));
    expect(kept.place(at(500), at(500), 1_100)).toEqual(at(500));
    // The end of what began before it changes nothing.
    kept.note(record("message_end"), at(501));
    expect(kept.place(at(502), at(502), 1_200)).toEqual(at(500));
  });

  test("is not after the place up to which changes are stored, and never goes back", () => {
    const kept = new KeptPlace(at(2), options);
    kept.place(at(50), at(3), 0);
    expect(kept.place(at(60), at(3), 20_000)).toEqual(at(3));
    expect(kept.place(at(60), at(1), 20_000)).toEqual(at(3));
    expect(kept.place(at(60), at(60), 20_000)).toEqual(at(50));
  });

  test("is moved where numbers cannot be found again", () => {
    const kept = new KeptPlace(start, options);
    kept.note(record("message_start"), at(1));
    kept.moveTo({ offset: 500, seq: 65_536 });
    expect(kept.place({ offset: 600, seq: 65_537 }, { offset: 600, seq: 65_537 }, 0)).toEqual({
      offset: 500,
      seq: 65_536,
    });
  });
});
