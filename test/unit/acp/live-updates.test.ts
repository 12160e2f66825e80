import type { SessionUpdate } from "@agentclientprotocol/sdk";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type ClientFeatures, LiveUpdates, type LiveUpdatesOptions } from "../../../acp/updates/live-updates.ts";
import { expectValidUpdates } from "../../helpers/acp-schema.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

const plain: ClientFeatures = { notices: false, compaction: false, terminals: false };
const usage = { totalTokens: 40, cost: { total: 0.5 } };

function start(options: Partial<LiveUpdatesOptions> = {}): { live: LiveUpdates; sent: Unchecked[] } {
  const sent: SessionUpdate[] = [];
  const send = (update: SessionUpdate): void => void sent.push(update);
  const base = { place: { cwd: "/project" }, client: plain, title: "known", contextSize: () => undefined };
  return { live: new LiveUpdates({ ...base, send, ...options }), sent };
}

/** Takes the updates that were sent since the last call. */
function taken(sent: Unchecked[]): Unchecked[] {
  const updates = sent.splice(0);
  expectValidUpdates(updates);
  return updates;
}

const step = (type: string, contentIndex: number, fields: object = {}): Unchecked => ({
  type: "message_update",
  assistantMessageEvent: { type, contentIndex, ...fields },
});
const assistant = (content: unknown, fields: object = {}): Unchecked => ({
  role: "assistant",
  content,
  timestamp: 5,
  stopReason: "stop",
  ...fields,
});
const begin = (fields: object = {}): Unchecked => ({ type: "message_start", message: assistant([], fields) });
const end = (content: unknown, fields: object = {}): Unchecked => ({
  type: "message_end",
  message: assistant(content, fields),
});
const execution = (kind: string, fields: object = {}): Unchecked => ({
  type: `tool_execution_${kind}`,
  toolCallId: "c1",
  toolName: "bash",
  ...fields,
});
const output = (words: string): object => ({ content: [{ type: "text", text: words }] });
const call = (args: unknown, id = "c1", name = "bash"): object => ({ type: "toolCall", id, name, arguments: args });
const fence = (words: string): object[] => [
  { type: "content", content: { type: "text", text: `\`\`\`\n${words}\n\`\`\`` } },
];
const chunk = (text: string, kind = "message"): object => ({
  sessionUpdate: `agent_${kind}_chunk`,
  messageId: "assistant-5",
  content: { type: "text", text },
});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("an answer", () => {
  test("its chunks have one id, and its end repeats nothing", () => {
    const { live, sent } = start({ contextSize: () => 100, cost: 1 });
    live.event(begin());
    live.event(step("thinking_start", 0));
    live.event(step("thinking_delta", 0, { delta: "hm" }));
    live.event(step("thinking_end", 0, { content: "hm" }));
    live.event(step("text_delta", 1, { delta: "a" }));
    live.event(step("text_end", 1, { content: "ab" }));
    live.event(
      end(
        [
          { type: "thinking", thinking: "hm" },
          { type: "text", text: "ab" },
        ],
        { usage },
      ),
    );
    expect(taken(sent)).toEqual([
      chunk("hm", "thought"),
      chunk("a"),
      chunk("b"),
      { sessionUpdate: "usage_update", used: 40, size: 100, cost: { amount: 1.5, currency: "USD" } },
    ]);
  });

  test("that failed is told with the provider's words, and has no usage", () => {
    const { live, sent } = start({ contextSize: () => 100 });
    live.event(begin());
    live.event(end([], { stopReason: "error", errorMessage: "400: no", usage }));
    live.event(begin());
    live.event(end([], { stopReason: "aborted", errorMessage: "Request was aborted", usage }));
    expect(taken(sent)).toEqual([{ ...chunk("Error: 400: no"), messageId: "assistant-5-error" }]);
  });

  test("whose text an extension replaced at its end stays as it was told", () => {
    const { live, sent } = start();
    live.event(begin());
    live.event(step("text_delta", 0, { delta: "secret" }));
    live.event(end([{ type: "text", text: "something else" }]));
    expect(taken(sent)).toEqual([chunk("secret")]);
  });

  test("is complete and in order, whichever deltas are lost", () => {
    const blocks = fc.array(
      fc.record({ kind: fc.constantFrom("text", "thinking"), parts: fc.array(fc.string(), { maxLength: 5 }) }),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(blocks, fc.infiniteStream(fc.boolean()), (given, losses) => {
        const content = given.map(({ kind, parts }) => ({ type: kind, [kind]: parts.join("") }));
        const events = given.flatMap(({ kind, parts }, index) => [
          step(`${kind}_start`, index),
          ...parts.map((delta) => step(`${kind}_delta`, index, { delta })),
          step(`${kind}_end`, index, { content: parts.join("") }),
        ]);
        const { live, sent } = start();
        live.event(begin());
        let isLost = false;
        for (const event of events) {
          isLost = losses.next().value === true;
          if (isLost) live.lose({ onlyDeltas: true });
          else live.event(event);
        }
        live.event(end(content));
        for (const kind of ["text", "thinking"] as const) {
          const name = kind === "text" ? "agent_message_chunk" : "agent_thought_chunk";
          const told = sent.filter(({ sessionUpdate }) => sessionUpdate === name).map((update) => update.content.text);
          expect(told.join("")).toBe(content.map((block) => (block as Unchecked)[kind] ?? "").join(""));
        }
      }),
    );
  });

  test("goes on after a gap in which it was written to the session's file", () => {
    const { live, sent } = start();
    live.event(begin());
    live.event(step("text_delta", 0, { delta: "a" }));
    live.lose();
    live.event(step("text_delta", 0, { delta: "of another answer" }));
    live.event({ type: "rpcd_entry", entry: { type: "message", message: assistant([{ type: "text", text: "ab" }]) } });
    live.event(end([{ type: "text", text: "next" }], { timestamp: 6 }));
    expect(taken(sent)).toEqual([chunk("a"), chunk("b"), { ...chunk("next"), messageId: "assistant-6" }]);
  });

  test("6,000 deltas cost less than 0.1 s", () => {
    const { live, sent } = start();
    const deltas = Array.from({ length: 6_000 }, (_, index) => step("text_delta", 0, { delta: `word ${index} ` }));
    live.event(begin());
    const before = process.cpuUsage();
    for (const event of deltas) live.event(event);
    const { user, system } = process.cpuUsage(before);
    expect(sent).toHaveLength(6_000);
    expect(user + system).toBeLessThan(100_000);
  });
});

describe("a tool call", () => {
  test("goes from its first argument to its result", () => {
    const { live, sent } = start();
    live.event(begin());
    live.event(step("toolcall_start", 0, { id: "c1", toolName: "bash" }));
    const pending = { sessionUpdate: "tool_call", toolCallId: "c1", name: "bash", title: "bash", kind: "execute" };
    expect(taken(sent)).toEqual([{ ...pending, status: "pending" }]);
    for (const delta of ['{"com', 'mand":"ec', "ho"]) live.event(step("toolcall_delta", 0, { delta }));
    expect(taken(sent)).toEqual([]);
    vi.advanceTimersByTime(250);
    const update = { sessionUpdate: "tool_call_update", toolCallId: "c1" };
    expect(taken(sent)).toEqual([
      { ...update, title: "echo", kind: "execute", locations: [], rawInput: { command: "echo" } },
    ]);
    live.event(step("toolcall_delta", 0, { delta: " x" }));
    const args = { command: "echo x" };
    live.event(step("toolcall_end", 0, { toolCall: call(args) }));
    live.event(end([call(args)]));
    live.event(execution("start", { args }));
    expect(taken(sent)).toEqual([
      { ...update, title: "echo x", kind: "execute", locations: [], rawInput: args },
      { ...update, status: "in_progress" },
    ]);
    for (const words of ["a", "ab"]) live.event(execution("update", { partialResult: output(words) }));
    vi.advanceTimersByTime(250);
    expect(taken(sent)).toEqual([{ ...update, content: fence("ab") }]);
    live.event(execution("update", { partialResult: output("abc") }));
    live.event(execution("end", { result: output("abcd"), isError: false }));
    vi.advanceTimersByTime(1_000);
    const ours = { "pi-rpcd": { exitCode: 0 } };
    expect(taken(sent)).toEqual([{ ...update, status: "completed", content: fence("abcd"), _meta: ours }]);
  });

  test("an ended one takes nothing more, and one that never ran has failed when the run ends", () => {
    const { live, sent } = start();
    live.event(begin());
    live.event(end([call({}), call({}, "c2")]));
    live.event(execution("start"));
    live.event(execution("end", { result: output("x"), isError: true }));
    taken(sent);
    live.event(execution("start"));
    live.event(execution("update", { partialResult: output("y") }));
    live.event(execution("end", { result: output("y"), isError: false }));
    live.event({
      type: "message_end",
      message: { role: "toolResult", toolCallId: "c1", isError: false, timestamp: 9 },
    });
    vi.advanceTimersByTime(1_000);
    expect(taken(sent)).toEqual([]);
    live.event({ type: "agent_end" });
    live.abandon();
    expect(taken(sent)).toEqual([{ sessionUpdate: "tool_call_update", toolCallId: "c2", status: "failed" }]);
  });

  describe("of the next run goes on", () => {
    const failed = (toolCallId: string): object => ({
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: "failed",
    });
    const tool = (id: string): Unchecked => execution("start", { toolCallId: id });
    const done = (id: string): Unchecked => execution("end", { toolCallId: id, result: output("x"), isError: false });

    test.each(["settled", "aborted", "failed"] as const)("when the end of a %s run is reported late", (outcome) => {
      const { live, sent } = start();
      for (const event of [{ type: "agent_start" }, tool("c1"), { type: "agent_end" }, { type: "agent_settled" }])
        live.event(event, 10, { generation: 1 });
      expect(taken(sent).at(-1)).toEqual(failed("c1"));
      live.event({ type: "agent_start" }, 20, { generation: 1 });
      live.event(tool("c2"), 21, { generation: 1 });
      taken(sent);
      live.runEnded({ outcome, startedAt: 9 });
      expect(taken(sent)).toEqual([]);
      live.event(done("c2"), 30, { generation: 1 });
      expect(taken(sent)).toMatchObject([{ toolCallId: "c2", status: "completed" }]);
    });

    test("when pi has ended in a run, and the end of that run is reported late", () => {
      const { live, sent } = start();
      live.event(tool("c1"), 10, { generation: 1 });
      taken(sent);
      // Another pi: what the former one did has no end.
      live.event({ type: "agent_start" }, 20, { generation: 2 });
      expect(taken(sent)).toEqual([failed("c1")]);
      live.event(tool("c2"), 21, { generation: 2 });
      taken(sent);
      live.runEnded({ outcome: "interrupted", startedAt: 9 });
      expect(taken(sent)).toEqual([]);
      live.runEnded({ outcome: "interrupted", startedAt: 19 });
      expect(taken(sent)).toEqual([failed("c2")]);
    });
  });

  test("that failed with its run gets the result that pi had written, but not one of a later answer", () => {
    const { live, sent } = start();
    const result = (toolCallId: string, words: string) => ({
      type: "rpcd_entry",
      entry: { type: "message", message: { role: "toolResult", toolCallId, ...output(words), isError: false } },
    });
    live.event(begin());
    live.event(end([call({}), call({}, "c2")]));
    live.event(execution("start"));
    taken(sent);
    live.abandon();
    live.event(result("c1", "x"));
    live.event(result("c1", "y"));
    live.event(begin({ timestamp: 6 }));
    live.event(result("c2", "z"));
    const update = { sessionUpdate: "tool_call_update", toolCallId: "c1" };
    expect(taken(sent)).toEqual([
      { ...update, status: "failed" },
      { ...update, toolCallId: "c2", status: "failed" },
      { ...update, status: "completed", content: fence("x"), _meta: { "pi-rpcd": { exitCode: 0 } } },
    ]);
  });

  test("with an id of an earlier answer gets its own", () => {
    const { live, sent } = start();
    for (const timestamp of [5, 6]) {
      live.event(begin({ timestamp }));
      live.event(end([call({ command: `n${timestamp}` })], { timestamp }));
      live.event(execution("end", { result: output("x") }));
    }
    const ids = taken(sent).map(({ toolCallId, status }) => [toolCallId, status]);
    expect(ids.filter(([, status]) => status !== undefined)).toEqual([
      ["c1", "pending"],
      ["c1", "completed"],
      ["c1#2", "pending"],
      ["c1#2", "completed"],
    ]);
  });

  test("whose events were lost, except for its result, is whole", () => {
    const { live, sent } = start();
    live.lose();
    const message = { role: "toolResult", toolCallId: "c1", toolName: "bash", ...output("x"), isError: false };
    live.event({ type: "message_end", message });
    expect(taken(sent).map(({ status }) => status)).toEqual(["pending", "completed"]);
  });

  test("long streaming arguments are shown in part, and cost one update", () => {
    const { live, sent } = start();
    live.event(begin());
    live.event(step("toolcall_start", 0, { id: "c1", toolName: "write" }));
    live.event(step("toolcall_delta", 0, { delta: `{"path":"a","content":"${"x".repeat(20_000)}` }));
    for (let n = 0; n < 8; n++) {
      vi.advanceTimersByTime(250);
      live.event(step("toolcall_delta", 0, { delta: "y".repeat(10_000) }));
    }
    const updates = taken(sent);
    expect(updates).toHaveLength(2);
    expect(updates[1]).toMatchObject({ title: "Write a", locations: [{ path: "/project/a" }] });
    expect(JSON.stringify(updates[1]).length).toBeLessThan(17_000);
  });

  test("write is a diff if the former text came in time", () => {
    const { live, sent } = start();
    live.event(begin());
    live.event(end([call({ path: "a", content: "new" }, "c1", "write")]));
    live.event(execution("start", { toolName: "write" }));
    live.formerText("c1", "old");
    live.event(execution("end", { toolName: "write", result: output("ok"), isError: false }));
    live.formerText("c1", "late");
    const diff = { type: "diff", path: "/project/a", oldText: "old", newText: "new" };
    expect(taken(sent).at(-1)).toMatchObject({ status: "completed", content: [diff] });
  });

  test("a call by a tool's script is not told", () => {
    const { live, sent } = start();
    live.event(execution("start", { toolCallId: "nested", parentToolCallId: "c1" }));
    live.event(execution("end", { toolCallId: "nested", parentToolCallId: "c1" }));
    expect(taken(sent)).toEqual([]);
  });

  test("a client with terminals gets the output as it grows, and the fence at the end", () => {
    const { live, sent } = start({ client: { ...plain, terminals: true } });
    live.event(begin());
    live.event(end([call({ command: "make" }), call({ command: "never" }, "c2")]));
    const terminal = { content: [{ type: "terminal", terminalId: "c1" }] };
    expect(taken(sent)[0]).toMatchObject({
      ...terminal,
      sessionUpdate: "tool_call",
      _meta: { terminal_info: { terminal_id: "c1", cwd: "/project" } },
    });
    live.event(execution("start"));
    taken(sent);
    for (const words of ["", "one\n", "one\ntwo\n", "two\nthree\n", "all new"]) {
      live.event(execution("update", { partialResult: output(words) }));
      vi.advanceTimersByTime(250);
    }
    const data = taken(sent).map(({ _meta }) => _meta.terminal_output.data);
    expect(data).toEqual(["one\n", "two\n", "two\nthree\n", "all new"]);
    live.event(execution("end", { result: output("x\n\nCommand exited with code 2"), isError: true }));
    live.event({ type: "agent_end" });
    const exit = (id: string, code: number | null): object => ({ terminal_id: id, exit_code: code, signal: null });
    expect(taken(sent)).toMatchObject([
      { status: "failed", content: [{ type: "content" }], _meta: { terminal_exit: exit("c1", 2) } },
      { toolCallId: "c2", status: "failed", content: [], _meta: { terminal_exit: exit("c2", null) } },
    ]);
  });

  test("nothing is sent after the end of the connection", () => {
    const { live, sent } = start();
    live.event(execution("start"));
    live.event(execution("update", { partialResult: output("x") }));
    taken(sent);
    live.close();
    vi.advanceTimersByTime(1_000);
    expect(sent).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("other events", () => {
  const result = { summary: "words", estimatedTokensAfter: 30, usage: { cost: { total: 1 } } };

  test("a compaction is an update of its own, or a tool call", () => {
    const own = start({ client: { ...plain, compaction: true }, contextSize: () => 100 });
    const tool = start();
    for (const { live } of [own, tool]) {
      live.event({ type: "compaction_start", reason: "manual" });
      live.event({ type: "compaction_end", result, aborted: false });
      live.event({ type: "compaction_start", reason: "manual" });
      live.event({ type: "compaction_end", aborted: true });
      live.event({ type: "compaction_end", aborted: false, errorMessage: "no" });
    }
    expect(taken(own.sent)).toMatchObject([
      { sessionUpdate: "compaction_update", status: "in_progress" },
      { status: "completed", summary: [{ type: "text", text: "words" }] },
      { sessionUpdate: "usage_update", used: 30, size: 100, cost: { amount: 1 } },
      { status: "in_progress" },
      { status: "cancelled" },
      { status: "in_progress" },
      { status: "failed", error: "no" },
    ]);
    expect(taken(tool.sent)).toMatchObject([
      { sessionUpdate: "tool_call", title: "Compacting the context", kind: "think", status: "in_progress" },
      { status: "completed", content: [{ content: { text: "words" } }] },
      { status: "in_progress" },
      { status: "failed" },
      { status: "in_progress" },
      { status: "failed", content: [{ content: { text: "no" } }] },
    ]);
  });

  test("a retry is a notice, or a line of its own", () => {
    const retry = { type: "auto_retry_start", attempt: 1, maxAttempts: 3, delayMs: 2_000, errorMessage: "529\nbusy" };
    const withNotices = start({ client: { ...plain, notices: true } });
    withNotices.live.event(retry);
    expect(taken(withNotices.sent)).toEqual([
      { sessionUpdate: "notice", severity: "warning", title: "Retry 1 of 3 in 2 s", description: "529\nbusy" },
    ]);
    const { live, sent } = start();
    live.event(retry);
    live.event(retry);
    const [first, second] = taken(sent);
    expect(first.content.text).toBe("Retry 1 of 3 in 2 s: 529 busy\n");
    expect(first.messageId).not.toBe(second.messageId);
  });

  test("users' messages come from the host, extensions' from pi if they are displayed", () => {
    const { live, sent } = start();
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    const by = { clientId: "editor-of-ada", name: "Ada's editor" };
    live.user({ role: "user", timestamp: 1, content: [{ type: "text", text: "hi" }, image] }, by);
    const custom = { role: "custom", customType: "ci", content: "green", timestamp: 2 };
    for (const display of [true, false])
      live.event({ type: "message_end", message: { ...custom, display } }, 2, { by });
    const user = { sessionUpdate: "user_message_chunk", messageId: "user-1", _meta: { "pi-rpcd": { by } } };
    expect(taken(sent)).toEqual([
      { ...user, content: { type: "text", text: "hi" } },
      { ...user, content: image },
      {
        sessionUpdate: "user_message_chunk",
        messageId: "custom-2",
        content: { type: "text", text: "green" },
        _meta: { "pi-rpcd": { by, customType: "ci" } },
      },
    ]);
  });

  test("the first message is the title until there is a name", () => {
    const { live, sent } = start({ title: undefined });
    const said = (content: string): Unchecked => ({ type: "message_end", message: { role: "user", content } });
    live.event(said("\n first words \n more"), 0);
    live.event(said("second"), 0);
    live.event({ type: "session_info_changed", name: "the name" }, 0);
    const info = { sessionUpdate: "session_info_update", updatedAt: "1970-01-01T00:00:00.000Z" };
    expect(taken(sent)).toEqual([
      { ...info, title: "first words" },
      { ...info, title: "the name" },
    ]);
  });

  test("no event with any JSON in it breaks anything", () => {
    const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant({ toString: 1, valueOf: 1 }));
    const types = [
      ...["message_start", "message_update", "message_end", "agent_end", "compaction_start", "compaction_end"],
      ...["tool_execution_start", "tool_execution_update", "tool_execution_end", "auto_retry_start", "rpcd_entry"],
      ...["session_info_changed", "entry_appended"],
    ];
    const id = fc.oneof(fc.constantFrom("c1", "c2"), value);
    const block = fc.oneof(
      value,
      fc.record({ type: fc.constantFrom("text", "thinking", "image"), text: value, thinking: value, data: value }),
      fc.record({ type: fc.constant("toolCall"), id, name: value, arguments: value }),
    );
    const message = fc.record({
      role: fc.constantFrom("assistant", "user", "custom", "toolResult", "other"),
      content: fc.oneof(value, fc.array(block)),
      timestamp: value,
      toolCallId: id,
      usage: value,
      stopReason: fc.constantFrom("error", "stop"),
      errorMessage: value,
      display: fc.boolean(),
    });
    const update = fc.record({
      type: fc.constantFrom(
        ...["text_start", "text_delta", "text_end", "thinking_delta"],
        ...["toolcall_start", "toolcall_delta", "toolcall_end"],
      ),
      contentIndex: fc.oneof(fc.nat(3), value),
      delta: value,
      content: value,
      id,
      toolName: value,
      toolCall: block,
    });
    const event = fc.record({
      type: fc.constantFrom(...types),
      message: fc.oneof(message, value),
      assistantMessageEvent: fc.oneof(update, value),
      toolCallId: id,
      toolName: value,
      args: value,
      result: fc.oneof(fc.record({ content: fc.array(block), details: value }), value),
      partialResult: value,
      isError: value,
      name: value,
      errorMessage: value,
      delayMs: value,
      entry: fc.oneof(value, fc.record({ type: fc.constantFrom("message", "compaction", "custom_message"), message })),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), fc.boolean(), (events, has) => {
        const client = { notices: has, compaction: has, terminals: has };
        const { live, sent } = start({ client, title: undefined, contextSize: () => 100 });
        for (const given of events) live.event(given);
        vi.advanceTimersByTime(300);
        live.abandon();
        taken(sent);
      }),
      { numRuns: 300 },
    );
  });
});
