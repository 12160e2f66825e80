import { expect, it } from "vitest";
import {
  isAgentSettled,
  isMessageEnd,
  isTextDelta,
  isToolExecutionEnd,
  isToolExecutionStart,
  type PiEvent,
  textOf,
} from "../../../client/pi-events.ts";

const guards = { isAgentSettled, isMessageEnd, isTextDelta, isToolExecutionEnd, isToolExecutionStart };

const rows: readonly (readonly [PiEvent, keyof typeof guards | undefined])[] = [
  [
    { type: "message_update", assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "a" } },
    "isTextDelta",
  ],
  [
    { type: "message_update", assistantMessageEvent: { type: "thinking_delta", contentIndex: 0, delta: "a" } },
    undefined,
  ],
  [{ type: "message_update" }, undefined],
  [{ type: "message_end", message: { role: "user", content: "a" } }, "isMessageEnd"],
  [{ type: "message_end", message: null }, undefined],
  [{ type: "agent_settled" }, "isAgentSettled"],
  [{ type: "tool_execution_start", toolCallId: "c", toolName: "bash", args: {} }, "isToolExecutionStart"],
  [{ type: "tool_execution_end", toolCallId: "c", toolName: "bash", result: {}, isError: false }, "isToolExecutionEnd"],
];

it.each(rows)("%j is recognised only by %s", (event, expected) => {
  const known = Object.entries(guards).filter(([, guard]) => guard(event));
  expect(known.map(([name]) => name)).toEqual(expected === undefined ? [] : [expected]);
});

it("returns the text of a message without anything else", () => {
  expect(textOf({ role: "user", content: "plain" })).toBe("plain");
  expect(textOf({ role: "user" })).toBe("");
  const content = [
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "Hello " },
    null,
    { type: "toolCall", id: "c", name: "bash", arguments: {} },
    { type: "text", text: "world" },
  ];
  expect(textOf({ role: "assistant", content })).toBe("Hello world");
});
