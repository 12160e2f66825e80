import { expect, test } from "vitest";
import { Backlog } from "../../../server/edge/backlog.ts";
import type { Frame } from "../../../server/frames/frame.ts";

const nothing = { mergeBytes: 0, dropBytes: 0 };

function delta(seq: number): Frame {
  const event = { type: "message_update", assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "x" } };
  const params = { sessionId: "s", seq, at: 1, generation: 1, event };
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "session/event", params }));
  return { bytes, sessionId: "s", seq, isDelta: true };
}

/** The numbers covered by the frames that leave the backlog, in order. */
function covered(backlog: Backlog): string[] {
  const stretches: string[] = [];
  for (let frame = backlog.shift(); frame !== undefined; frame = backlog.shift()) {
    stretches.push(`${frame.firstSeq ?? frame.seq}..${frame.seq}`);
  }
  return stretches;
}

function add(backlog: Backlog, from: number, to: number): void {
  for (let seq = from; seq <= to; seq += 1) {
    backlog.push(delta(seq));
    backlog.shrink(nothing);
  }
}

test("deltas that follow each other leave one gap", () => {
  const backlog = new Backlog();
  add(backlog, 100, 119);
  expect(covered(backlog)).toEqual(["100..119"]);
});

test("a peer that goes back in the log gets its own gap for repeated events", () => {
  const backlog = new Backlog();
  add(backlog, 100, 119);
  add(backlog, 51, 109);
  add(backlog, 110, 125);
  expect(covered(backlog)).toEqual(["100..119", "51..125"]);
});
