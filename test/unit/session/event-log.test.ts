import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Frame as SentFrame } from "../../../server/frames/frame.ts";
import { EventLog } from "../../../server/session/event-log.ts";
import { SeqNumbers } from "../../../server/session/seq-numbers.ts";

interface Frame {
  readonly method: string;
  readonly params: {
    readonly sessionId: string;
    readonly seq: number;
    readonly at: number;
    readonly [key: string]: unknown;
  };
}

const parse = ({ bytes }: SentFrame): Frame => JSON.parse(bytes.toString("utf8")) as Frame;
const reserve = (reserved = 0) => ({ reserved, reserve: () => Promise.resolve(), flush: () => {} });
const log = (maxRetainedBytes = 1 << 20) =>
  new EventLog({ sessionId: "s-1", maxRetainedBytes, numbers: new SeqNumbers(reserve()) });

describe("EventLog", () => {
  test("wraps pi's very bytes in an envelope with the next seq", () => {
    const record = '{"type":"x", "text":"ä\u2028","n":1.0}';
    const events = log();
    events.appendEvent(Buffer.from('{"type":"first"}'), 1);
    const frame = events.appendEvent(Buffer.from(record), 3);
    expect(frame.bytes.includes(record)).toBe(true);
    expect(parse(frame)).toMatchObject({
      jsonrpc: "2.0",
      method: "session/event",
      params: { sessionId: "s-1", seq: 2, generation: 3, event: { type: "x", text: "ä\u2028", n: 1 } },
    });
  });

  test("numbers the daemon's own notifications in the same row", () => {
    const events = log();
    events.appendEvent(Buffer.from("{}"), 1);
    expect(parse(events.append("delivery/updated", { delivery: { state: "held" } }))).toMatchObject({
      method: "delivery/updated",
      params: { sessionId: "s-1", seq: 2, delivery: { state: "held" } },
    });
    expect(parse(events.append("session/updated", {})).params.seq).toBe(3);
    expect(events.cursor).toBe(3);
  });

  test("replays exactly what is behind a cursor", () => {
    const events = log();
    for (let i = 1; i <= 5; i += 1) events.appendEvent(Buffer.from(`{"i":${i}}`), 1);
    expect(events.since(2).frames.map((frame) => parse(frame).params.seq)).toEqual([3, 4, 5]);
    expect(events.since(5)).toEqual({ frames: [], cursor: 5, gap: undefined });
  });

  test("gives everything to a cursor that is ahead of it, and says that it is of another log", () => {
    const events = log();
    events.appendEvent(Buffer.from("{}"), 1);
    const { frames, gap } = events.since(7);
    expect(gap).toEqual({ from: 0, to: 7, reason: "log_reset" });
    expect(frames).toHaveLength(1);
  });

  test("goes on behind what was reserved before, with a gap for a cursor from before", () => {
    const numbers = new SeqNumbers(reserve(100));
    const events = new EventLog({ sessionId: "s-1", maxRetainedBytes: 1 << 20, numbers });
    expect(events.cursor).toBe(100);
    expect(events.since(4).gap).toEqual({ from: 5, to: 100, reason: "not_retained" });
    expect(parse(events.appendEvent(Buffer.from("{}"), 1)).params.seq).toBe(101);
    expect(events.since(4).gap).toEqual({ from: 5, to: 100, reason: "not_retained" });
  });

  test("holds no more than its bound and one segment, and covers what it forgot by a gap", () => {
    const record = Buffer.from(JSON.stringify({ text: "x".repeat(500) }));
    const events = log(64 * 1024);
    for (let i = 0; i < 2_000; i += 1) events.appendEvent(record, 1);
    const { frames, gap } = events.since(0);
    expect(gap).toEqual({ from: 1, to: parse(frames[0] as SentFrame).params.seq - 1, reason: "not_retained" });
    expect(frames.reduce((sum, frame) => sum + frame.bytes.length, 0)).toBeLessThan(64 * 1024 + 16 * 1024);
  });

  test("loses, doubles and reorders nothing, whatever the sizes, the bound and the cursor", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: 30_000 }), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 200_000 }),
        fc.nat({ max: 70 }),
        (sizes, bound, after) => {
          const events = log(bound);
          for (const size of sizes)
            events.appendEvent(Buffer.from(JSON.stringify({ size, text: "y".repeat(size) })), 1);
          if (after > sizes.length) return;
          const { frames, gap } = events.since(after);
          const seqs = frames.map((frame) => parse(frame).params);
          const first = gap === undefined ? after + 1 : gap.to + 1;
          expect(seqs.map(({ seq }) => seq)).toEqual(
            Array.from({ length: sizes.length - first + 1 }, (_, i) => first + i),
          );
          for (const { seq, event } of seqs) expect(event).toMatchObject({ size: sizes[seq - 1] });
        },
      ),
      { numRuns: 200 },
    );
  });

  test("does not change a frame that somebody still holds", () => {
    const events = log(8 * 1024);
    const held = events.appendEvent(Buffer.from('{"keep":"me"}'), 1);
    const text = held.bytes.toString("utf8");
    for (let i = 0; i < 500; i += 1) events.appendEvent(Buffer.alloc(300, 0x20), 1);
    expect(held.bytes.toString("utf8")).toBe(text);
  });
});
