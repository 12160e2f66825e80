import { expect, test } from "vitest";
import { headOf, PresentEvents } from "../../../server/log/present-events.ts";

/** Notes events under the numbers from 1 on. */
function noted(...events: readonly object[]): { readonly present: PresentEvents; readonly cursor: number } {
  const present = new PresentEvents();
  for (const [index, event] of events.entries()) present.note(event as { type: string }, index + 1);
  return { present, cursor: events.length };
}

const ui = (method: string, fields: object) => ({ type: "extension_ui_request", method, ...fields });
const status = (statusKey: string, statusText?: string) => ui("setStatus", { statusKey, statusText });
const start = { type: "agent_start" };
const tool = (step: "start" | "end", toolCallId: string) => ({ type: `tool_execution_${step}`, toolCallId });

test("the newest status, widget and title of each key hold, in pi's order, and what was removed does not", () => {
  const widget = ui("setWidget", { widgetKey: "a", widgetLines: ["x"] });
  const title = ui("setTitle", { title: "new" });
  const { present, cursor } = noted(
    status("a", "old"),
    status("b", "gone"),
    widget,
    ui("setTitle", { title: "old" }),
    status("a", "new"),
    status("b"),
    ui("notify", { message: "once" }),
    title,
  );
  expect(present.catchUp(cursor)).toEqual({ after: cursor, present: [widget, status("a", "new"), title] });
});

test("a client begins before the first message or tool that is open, with the run's start", () => {
  const { present, cursor } = noted(
    start,
    { type: "message_start" },
    { type: "message_end" },
    tool("start", "one"),
    tool("start", "two"),
    tool("end", "one"),
  );
  expect(present.catchUp(cursor)).toEqual({ after: 4, present: [start] });
  present.note(tool("end", "two"), 7);
  expect(present.catchUp(7)).toEqual({ after: 7, present: [start] });
  present.note({ type: "message_start" }, 8);
  expect(present.catchUp(20)).toEqual({ after: 7, present: [start] });
  present.note({ type: "agent_settled" }, 21);
  expect(present.catchUp(21)).toEqual({ after: 21, present: [] });
});

test("what is sent again after that place is not told twice", () => {
  const { present, cursor } = noted(status("a", "before"), start, { type: "message_start" }, status("b", "meanwhile"));
  expect(present.catchUp(cursor)).toEqual({ after: 2, present: [status("a", "before"), start] });
});

test("records that are not parsed are told from their first fields", () => {
  const head = (record: object) => headOf(Buffer.from(JSON.stringify(record)));
  expect(head({ type: "message_start", message: { text: "x".repeat(5_000) } })).toEqual({ type: "message_start" });
  expect(head({ type: "tool_execution_end", toolCallId: 'a"\\ä|b', result: {} })).toEqual(tool("end", 'a"\\ä|b'));
  expect(head({ type: "tool_execution_end", toolCallId: "x".repeat(5_000) })).toEqual({ type: "tool_execution_end" });
  expect(head({ other: 1 })).toEqual({ type: "" });
});

test("what is kept is bounded, and ends with pi", () => {
  const { present, cursor } = noted(
    status("huge", "x".repeat(300_000)),
    ...Array.from({ length: 1_000 }, (_, index) => status(`key ${index}`, "x".repeat(1_000))),
  );
  const { present: kept } = present.catchUp(cursor);
  expect(JSON.stringify(kept).length).toBeLessThan(256 * 1024);
  expect(kept.length).toBeLessThanOrEqual(128);
  expect(kept.at(-1)).toMatchObject({ statusKey: "key 999" });
  present.clear();
  expect(present.catchUp(cursor).present).toEqual([]);
});

test("a record that was not parsed is read even if its id has a malformed escape", () => {
  for (const id of ["\\x", "\\u12", "a\tb"])
    expect(headOf(Buffer.from(`{"type":"tool_execution_start","toolCallId":"${id}"}`))).toEqual({
      type: "tool_execution_start",
    });
});
