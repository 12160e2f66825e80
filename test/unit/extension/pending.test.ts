import { expect, test } from "vitest";
import type { OutwardBody } from "../../../extension/link/outbound.ts";
import { PendingList } from "../../../extension/pending/list.ts";
import { parseOutwardFrame } from "../../../server/pi/outward-frame.ts";
import { unchecked } from "../../helpers/partial.ts";

const item = { id: "a", label: "Tests", state: "running", startedAt: 5 } as const;

/** The frame as the daemon reads it. */
const read = (frame: object): unknown => parseOutwardFrame(JSON.stringify(frame));

function listed(): { list: PendingList; frames: OutwardBody[]; widgets: (string[] | undefined)[] } {
  const frames: OutwardBody[] = [];
  const widgets: (string[] | undefined)[] = [];
  const ui = { setStatus: () => {}, setWidget: (_key: string, lines: string[] | undefined) => widgets.push(lines) };
  const list = new PendingList({ send: (frame) => frames.push(frame), context: () => unchecked({ ui }) });
  return { list, frames, widgets };
}

test("each change is reported completely, as a frame that the daemon accepts", () => {
  const { list, frames, widgets } = listed();
  list.show(item);
  list.show({ ...item, state: "failed", error: "Nobody\u001b[31m listened\nto it." });
  list.hide("a");
  list.hide("a");
  list.clear();
  expect(widgets).toEqual([["… Tests"], ["✗ Tests: Nobody [31m listened to it."], undefined]);
  expect(frames).toHaveLength(3);
  for (const frame of frames) expect(read({ ...frame, at: 1 })).toEqual({ ...frame, at: 1 });
});

test("long or numerous entries are cut, and hidden ones are never in a frame", () => {
  const { list, frames, widgets } = listed();
  for (let n = 0; n < 150; n += 1) list.show({ ...item, id: `i-${n}`, label: "x".repeat(1_000) });
  const last = frames.at(-1);
  expect(last?.kind === "pending" && last.pending).toHaveLength(100);
  expect(read({ ...last, at: 1 })).toEqual({ ...last, at: 1 });
  expect(widgets.at(-1)).toHaveLength(9);
  expect(widgets.at(-1)?.at(-1)).toBe("and 92 more");
});

test.for<[string, unknown]>([
  ["no list", "none"],
  ["too many", Array.from({ length: 101 }, (_, n) => ({ ...item, id: `i-${n}` }))],
  ["a hole", new Array(1)],
  ["an invalid item", [7]],
  ["an invalid id", [{ ...item, id: "__proto__" }]],
  ["a label that is not a text", [{ ...item, label: {} }]],
  ["a state that there is not", [{ ...item, state: "toString" }]],
  ["a time that no date can hold", [{ ...item, startedAt: 9e15 }]],
  ["an error that is not a text", [{ ...item, error: 7 }]],
])("the daemon takes no frame with %s", ([, pending]) => {
  expect(read({ kind: "pending", at: 1, pending })).toBeUndefined();
});

test("the daemon cuts long entries and omits unknown ones", () => {
  const frame = { kind: "pending", at: 1, pending: [{ ...item, label: "x".repeat(500), more: "hidden" }] };
  expect(read(frame)).toEqual({ kind: "pending", at: 1, pending: [{ ...item, label: "x".repeat(200) }] });
});

test("a display that is gone does not cause a failure", () => {
  const list = new PendingList({
    send: () => {},
    context: () => {
      throw new Error("stale");
    },
  });
  expect(() => list.show(item)).not.toThrow();
});
