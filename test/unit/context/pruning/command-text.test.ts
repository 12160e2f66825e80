import { convertToLlm } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { commandText } from "../../../../context/pruning/tags.ts";
import type { AgentMessage } from "../../../../extension/pi-types.ts";

type Command = Extract<AgentMessage, { role: "bashExecution" }>;

test.each([
  { output: "a\nb\n", exitCode: 0 },
  { output: "", exitCode: undefined },
  { output: "", exitCode: 3, truncated: true },
  { output: "a", exitCode: 3, cancelled: true },
  { output: "a", exitCode: 3, truncated: true, fullOutputPath: "/tmp/out" },
])("a command is told in pi's own words: %j", (ended) => {
  const command = { role: "bashExecution", command: "ls `x`", timestamp: 1, cancelled: false, truncated: false };
  const message = { ...command, ...ended } as Command;
  const [told] = convertToLlm([message]);
  expect(told?.content).toEqual([{ type: "text", text: commandText(message) }]);
});
