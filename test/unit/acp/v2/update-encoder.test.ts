import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { UpdateEncoder } from "../../../../acp/v2/update-encoder.ts";
import { acpFindings } from "../../../helpers/acp-schema.ts";
import type { Unchecked } from "../../../helpers/unchecked.ts";

/** The updates in version 2. Each is checked by its schema. */
function encoded(updates: readonly Unchecked[], encoder = new UpdateEncoder()): Unchecked[] {
  const all = updates.flatMap((update) => encoder.encode(update as SessionUpdate) as Unchecked[]);
  for (const update of all) {
    const sent: unknown = JSON.parse(JSON.stringify({ sessionId: "s", update }));
    expect(acpFindings("UpdateSessionNotification", sent, "v2"), JSON.stringify(update)).toEqual([]);
  }
  return all;
}

const chunk = (kind: string, text: string, messageId = "m"): Unchecked => ({
  sessionUpdate: `${kind}_chunk`,
  messageId,
  content: { type: "text", text },
});
const image = { type: "image", data: "AAAA", mimeType: "image/png" };
const call = (fields: object = {}): Unchecked => ({
  sessionUpdate: "tool_call",
  toolCallId: "t",
  name: "bash",
  title: "x",
  kind: "execute",
  status: "pending",
  ...fields,
});
const update = (fields: object): Unchecked => ({ sessionUpdate: "tool_call_update", toolCallId: "t", ...fields });

describe("messages", () => {
  test("begin with what replaces a former message, and go on with pieces", () => {
    expect(
      encoded([chunk("agent_message", "a"), chunk("agent_message", "b"), chunk("agent_message", "c", "n")]),
    ).toEqual([
      { sessionUpdate: "agent_message", messageId: "m", content: [{ type: "text", text: "a" }] },
      { sessionUpdate: "agent_message_chunk", messageId: "m", content: { type: "text", text: "b" } },
      { sessionUpdate: "agent_message", messageId: "n", content: [{ type: "text", text: "c" }] },
    ]);
  });

  test("end where a tool call, a thought or another message comes between their pieces", () => {
    const pieces = [
      chunk("agent_thought", "1"),
      chunk("agent_message", "2"),
      call(),
      update({ status: "in_progress" }),
      chunk("agent_message", "3"),
      chunk("agent_thought", "4"),
      update({ status: "completed" }),
      chunk("agent_thought", "5"),
    ];
    const messages = encoded(pieces).filter(({ messageId }) => messageId !== undefined);
    expect(messages.map(({ sessionUpdate, messageId }) => [sessionUpdate, messageId])).toEqual([
      ["agent_thought", "m"],
      ["agent_message", "m"],
      ["agent_message", "m#2"],
      ["agent_thought", "m#2"],
      ["agent_thought_chunk", "m#2"],
    ]);
  });

  test("go on where the model goes on with an earlier block", () => {
    const encoder = new UpdateEncoder();
    const say = (text: string, block: number, id?: string): Unchecked =>
      encoder.encode(chunk("agent_message", text, id) as SessionUpdate, block)[0];
    const ids = [say("a", 0), say("b", 1)];
    encoder.encode(call() as SessionUpdate);
    ids.push(say("c", 1), say("d", 3), say("e", 3), say("f", 1), say("g", 1, "n"));
    expect(ids.map(({ sessionUpdate, messageId }) => [sessionUpdate.endsWith("_chunk"), messageId])).toEqual([
      [false, "m"],
      [true, "m"],
      [true, "m"],
      [false, "m#2"],
      [true, "m#2"],
      [true, "m"],
      [false, "n"],
    ]);
  });

  test("of a user have their blocks together, and those of the same millisecond are told apart", () => {
    const meta = { "pi-rpcd": { by: "other" } };
    const encoder = new UpdateEncoder();
    const first = { ...chunk("user_message", "see"), _meta: meta };
    const updates = encoded(
      [first, { ...first, content: image }, chunk("user_message", "and"), chunk("user_message", "again")],
      encoder,
    );
    expect(updates).toEqual([
      { sessionUpdate: "user_message", messageId: "m", content: [{ type: "text", text: "see" }], _meta: meta },
      { sessionUpdate: "user_message_chunk", messageId: "m", content: image },
      { sessionUpdate: "user_message_chunk", messageId: "m", content: { type: "text", text: "and" } },
      { sessionUpdate: "user_message", messageId: "m#2", content: [{ type: "text", text: "again" }] },
    ]);
    expect(encoder.lastUserMessage).toBe("m#2");
  });
});

describe("tool calls", () => {
  test("are created by their first update, and those that say nothing are left out", () => {
    expect(encoded([call(), update({ _meta: {} }), update({ status: "failed", content: [] })])).toEqual([
      { ...call(), sessionUpdate: "tool_call_update" },
      update({ status: "failed", content: [] }),
    ]);
  });

  test("of commands have terminals, whose output is in bytes", () => {
    const terminal = { terminal_id: "t" };
    const updates = encoded([
      call({ content: [{ type: "terminal", terminalId: "t" }], _meta: { terminal_info: { ...terminal, cwd: "/c" } } }),
      update({ _meta: { terminal_output: { ...terminal, data: "ü\n" } } }),
      update({
        status: "completed",
        _meta: { "pi-rpcd": { exitCode: 3 }, terminal_exit: { ...terminal, exit_code: 3, signal: null } },
      }),
    ]);
    expect(updates).toEqual([
      { sessionUpdate: "terminal_update", terminalId: "t", cwd: "/c" },
      { ...call({ content: [{ type: "terminal", terminalId: "t" }] }), sessionUpdate: "tool_call_update" },
      { sessionUpdate: "terminal_output_chunk", terminalId: "t", data: Buffer.from("ü\n").toString("base64") },
      { sessionUpdate: "terminal_update", terminalId: "t", exitStatus: { exitCode: 3 } },
      update({ status: "completed", _meta: { "pi-rpcd": { exitCode: 3 } } }),
    ]);
    expect(encoded([update({ _meta: { terminal_exit: { ...terminal, exit_code: null, signal: null } } })])).toEqual([
      { sessionUpdate: "terminal_update", terminalId: "t", exitStatus: {} },
    ]);
  });

  test("that edit a file have one diff, with the patch that pi has made", () => {
    const diff = (oldText: string, newText: string): object => ({ type: "diff", path: "/a", oldText, newText });
    const details = { patch: "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n", firstChangedLine: 1 };
    const end = update({ status: "completed", content: [diff("1", "2"), diff("3", "4")], rawOutput: { details } });
    const text = "diff --git /a /a\n--- /a\n+++ /a\n@@ -1 +1 @@\n-1\n+2\n";
    expect(encoded([call({ name: "edit" }), end])[1]).toEqual(
      update({
        status: "completed",
        content: [
          {
            type: "diff",
            changes: [{ operation: "modify", path: "/a", fileType: "text" }],
            patch: { format: "git_patch", text },
          },
        ],
        rawOutput: { details: { firstChangedLine: 1 } },
      }),
    );
    const without = encoded([call({ name: "edit" }), update({ content: [diff("1", "2")] })])[1];
    expect(without.content).toEqual([
      { type: "diff", changes: [{ operation: "modify", path: "/a", fileType: "text" }] },
    ]);
  });

  test("that write a file say whether it is a new one", () => {
    const written = (oldText: string | null): Unchecked =>
      encoded([
        call({ name: "write" }),
        update({ content: [{ type: "diff", path: "/a", oldText, newText: "new\n" }] }),
      ])[1];
    expect(written(null).content[0]).toMatchObject({
      changes: [{ operation: "add" }],
      patch: { text: expect.stringContaining("new file mode 100644\n--- /dev/null\n+++ /a\n@@ -0,0 +1,1 @@\n+new\n") },
    });
    expect(written("old\n").content[0]).toMatchObject({
      changes: [{ operation: "modify" }],
      patch: { text: expect.stringContaining("@@ -1,1 +1,1 @@\n-old\n+new\n") },
    });
  });
});

test("commands, options, titles, usage, notices and compactions have the shapes of version 2, modes are left out", () => {
  const updates = encoded([
    {
      sessionUpdate: "available_commands_update",
      availableCommands: [
        { name: "one", description: "", input: { hint: "words" } },
        { name: "one", description: "again" },
        { name: "two words", description: "" },
        { name: "two", description: "d" },
      ],
    },
    {
      sessionUpdate: "config_option_update",
      configOptions: [
        {
          type: "select",
          id: "model",
          name: "Model",
          category: "model",
          currentValue: "a",
          options: [{ value: "a", name: "A" }],
        },
      ],
    },
    { sessionUpdate: "current_mode_update", currentModeId: "off" },
    { sessionUpdate: "session_info_update", title: null },
    { sessionUpdate: "usage_update", used: 1, size: 2, cost: { amount: 0.5, currency: "USD" } },
    { sessionUpdate: "notice", severity: "info", title: "x" },
    {
      sessionUpdate: "compaction_update",
      compactionId: "c",
      status: "completed",
      summary: [{ type: "text", text: "s" }],
    },
  ]);
  expect(updates.slice(0, 2)).toEqual([
    {
      sessionUpdate: "available_commands_update",
      availableCommands: [
        { type: "command", name: "one", description: "", input: { type: "text", hint: "words" } },
        { type: "command", name: "two", description: "d" },
      ],
    },
    {
      sessionUpdate: "config_option_update",
      configOptions: [
        {
          type: "select",
          configId: "model",
          name: "Model",
          category: "model",
          currentValue: "a",
          options: [{ value: "a", name: "A" }],
        },
      ],
    },
  ]);
  expect(updates.slice(2).map(({ sessionUpdate }) => sessionUpdate)).toEqual([
    "session_info_update",
    "usage_update",
    "notice",
    "compaction_update",
  ]);
});
