import { expect, test } from "vitest";
import { unpaired, withKnown } from "../../../context/parts/estimator/same-message.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";

const messages = [
  { role: "system", content: "", sections: { rules: "Be kind." }, timestamp: 1 },
  { role: "user", content: "Hello.", timestamp: 2 },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "So." },
      { type: "toolCall", id: "c1", name: "read", arguments: { path: "a.ts" } },
    ],
    timestamp: 3,
  },
  { role: "toolResult", toolCallId: "c1", toolName: "read", content: [{ type: "text", text: "x" }], timestamp: 4 },
  { role: "bashExecution", command: "ls", output: "a.ts", exitCode: 0, timestamp: 5 },
  { role: "compactionSummary", summary: "It began.", timestamp: 6 },
] as unknown as readonly AgentMessage[];

test("a copy of a message is recognised as the known message", () => {
  const made = withKnown(structuredClone(messages) as AgentMessage[], messages);
  expect(made.every((message, at) => message === messages[at])).toBe(true);
  expect(unpaired(messages, made)).toEqual({ gone: [], come: [] });
});

test.each<readonly [number, object]>([
  [0, { sections: { rules: "Be kinder." } }],
  [0, { sections: {} }],
  [1, { content: "Hello!" }],
  [1, { content: [{ type: "text", text: "Hello." }] }],
  [2, { content: [{ type: "thinking", thinking: "So." }] }],
  [2, { content: [{ type: "thinking", thinking: "So?" }, (messages[2] as { content: unknown[] }).content[1]] }],
  [3, { content: [{ type: "text", text: "y" }] }],
  [3, { role: "user" }],
  [4, { output: "b.ts" }],
  [4, { excludeFromContext: true }],
  [5, { summary: "It ended." }],
])("message %i with %j is another message", (at, fields) => {
  const changed = { ...messages[at], ...fields } as unknown as AgentMessage;
  const made = withKnown(messages.with(at, changed), messages);
  expect(unpaired(messages, made)).toEqual({ gone: [messages[at]], come: [changed] });
});

test("messages added at the end are new, and removed ones are missing", () => {
  const shorter = messages.slice(0, 4);
  expect(unpaired(shorter, withKnown(messages, shorter)).come).toEqual(messages.slice(4));
  expect(unpaired(messages, withKnown(shorter, messages)).gone).toEqual(messages.slice(4));
});
