import { expect, test } from "vitest";
import { type ContextEntry, isCandidate, outputsOf } from "../../../../../context/parts/masking/candidates.ts";
import type { AgentMessage } from "../../../../../extension/pi-types.ts";

const entry = (id: string, message: object): ContextEntry =>
  ({ sourceEntry: { type: "message", id, message }, messages: [message as AgentMessage] }) as unknown as ContextEntry;
const user = (id: string): ContextEntry => entry(id, { role: "user", content: "Go on." });
const turn = (id: string, fields: object = {}): readonly ContextEntry[] => [
  entry(`a-${id}`, {
    role: "assistant",
    content: [{ type: "toolCall", id: `c-${id}`, name: "read", arguments: { path: id } }],
  }),
  entry(id, {
    role: "toolResult",
    toolCallId: `c-${id}`,
    toolName: "read",
    content: [{ type: "text", text: id }],
    isError: false,
    ...fields,
  }),
];
const rules = { afterTurns: 2, afterUserTurns: null, protectTokens: 0, errors: "keep", excludeTools: [] } as const;

const candidates = (
  context: readonly ContextEntry[],
  given: Partial<Parameters<typeof isCandidate>[1]> = {},
): string[] =>
  outputsOf(context, () => 100)
    .filter((output) => isCandidate(output, { ...rules, ...given }))
    .map(({ entryId }) => entryId);

const run = [user("u1"), ...["t1", "t2", "t3", "t4"].flatMap((id) => turn(id))];

test("age is counted in turns of the model, not of the user", () => {
  expect(candidates(run)).toEqual(["t1", "t2"]);
  expect(candidates(run, { afterTurns: 1 })).toEqual(["t1", "t2", "t3"]);
  expect(candidates(run, { afterUserTurns: 1 })).toEqual([]);
  expect(candidates([...run, user("u2")], { afterUserTurns: 1 })).toEqual(["t1", "t2"]);
});

test("the newest outputs up to this many tokens stay", () => {
  expect(candidates(run, { protectTokens: 300 })).toEqual(["t1"]);
  expect(candidates(run, { protectTokens: 301 })).toEqual([]);
});

test("errors stay unless configured otherwise, and so do excluded tools", () => {
  const failed = [
    user("u1"),
    ...turn("t1", { isError: true }),
    ...turn("t2", { toolName: "grep" }),
    ...turn("t3"),
    ...turn("t4"),
  ];
  expect(candidates(failed)).toEqual(["t2"]);
  expect(candidates(failed, { errors: "mask", excludeTools: ["grep"] })).toEqual(["t1"]);
});

test("an edited output stays as it is, whoever edited it", () => {
  const edit = {
    sourceEntry: { type: "context_edit", id: "x1", targetId: "t1" },
    messages: [],
  } as unknown as ContextEntry;
  expect(candidates([...run, edit])).toEqual(["t2"]);
});

test("outputs of users' commands can be masked too, except those hidden from the model", () => {
  const command = {
    role: "bashExecution",
    command: "ls",
    output: "x",
    exitCode: 0,
    cancelled: false,
    truncated: false,
  };
  const context = [
    entry("c1", command),
    entry("c2", { ...command, excludeFromContext: true }),
    entry("c3", { ...command, exitCode: 1 }),
    ...run,
  ];
  expect(candidates(context)).toEqual(["c1", "t1", "t2"]);
});

test("an output knows its call's arguments and its position", () => {
  expect(outputsOf(run, () => 100)[0]).toMatchObject({
    args: { path: "t1" },
    at: 2,
    turns: 3,
    newer: 300,
    tokens: 100,
  });
});
