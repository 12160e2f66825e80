import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Client } from "../../../client/client.ts";
import type { SessionHandle } from "../../../client/session-handle.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { Envelope } from "../../../protocol/event.ts";
import type { SessionInfo } from "../../../protocol/session.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { envelope, sessionId, sessionInfo } from "./fixtures.ts";

let daemon: FakeDaemon;
let client: Client;
let session: SessionHandle;
let seq: number;

beforeEach(async () => {
  seq = 0;
  daemon = await FakeDaemon.start();
  client = await daemon.connect({ reconnect: false });
  session = client.session(sessionId);
  daemon.answer("session/subscribe", () => ({ cursor: seq }));
  daemon.answer("session/unsubscribe", () => ({ wasSubscribed: true }));
  daemon.answer("session/prompt", () => ({ promptId: "p", disposition: "started" }));
});

afterEach(async () => {
  await client.close();
  await daemon[Symbol.asyncDispose]();
});

function emit(...events: readonly (Envelope["event"] & Record<string, unknown>)[]): void {
  for (const event of events) {
    seq += 1;
    daemon.notify("session/event", envelope(seq, event));
  }
}

function update(changes: Partial<SessionInfo>, more: object = {}): void {
  seq += 1;
  daemon.notify("session/updated", { sessionId, seq, at: seq, session: sessionInfo(changes), ...more });
}

const start = { type: "agent_start" };
const settled = { type: "agent_settled" };

function says(text: string, changes: object = {}): Envelope["event"] & Record<string, unknown> {
  const message = { role: "assistant", content: [{ type: "text", text }], stopReason: "stop", ...changes };
  return { type: "message_end", message };
}

describe("a session's calls", () => {
  it("carry its id and what was given, and nothing else", async () => {
    const result = { promptId: "p", disposition: "queued" } as const;
    const { signal } = new AbortController();
    daemon.answer("session/create", () => sessionInfo());
    daemon.answer("session/prompt", () => result);
    daemon.answer("session/steer", () => result);
    daemon.answer("session/followUp", () => result);
    daemon.answer("session/abort", () => ({ aborted: true, deliveries: [] }));
    daemon.answer("session/get", () => sessionInfo({ state: "running" }));
    daemon.answer("session/command", () => ({ data: { messages: [] } }));
    const created = await client.createSession({ cwd: "/work", model: "faux/one" }, { signal });
    expect(created.info).toEqual(sessionInfo());
    expect(created.id).toBe(sessionId);
    expect(await created.prompt("a", { ifRunning: "steer", signal })).toEqual(result);
    expect(await created.steer("b", { idempotencyKey: "k", signal })).toEqual(result);
    expect(await created.followUp("c")).toEqual(result);
    expect(await created.abort({ signal })).toEqual({ aborted: true, deliveries: [] });
    expect(await created.get()).toEqual(sessionInfo({ state: "running" }));
    expect(created.info?.state).toBe("running");
    expect(await created.command({ type: "get_messages" }, { signal })).toEqual({ messages: [] });
    expect(await created.command({ type: "set_auto_retry", enabled: true }, { confirmShared: true })).toBeDefined();
    expect(daemon.calls.map(({ method, params }) => [method, params])).toEqual([
      ["session/create", { cwd: "/work", model: "faux/one" }],
      ["session/prompt", { sessionId, text: "a", ifRunning: "steer" }],
      ["session/steer", { sessionId, text: "b", idempotencyKey: "k" }],
      ["session/followUp", { sessionId, text: "c" }],
      ["session/abort", { sessionId }],
      ["session/get", { sessionId }],
      ["session/command", { sessionId, command: { type: "get_messages" } }],
      ["session/command", { sessionId, command: { type: "set_auto_retry", enabled: true }, confirmShared: true }],
    ]);
  });
});

describe("promptAndWait", () => {
  it("subscribes first, and resolves with the last assistant text when pi has settled", async () => {
    const answer = session.promptAndWait("question", { ifRunning: "followUp" });
    expect((await daemon.called("session/prompt")).params).toEqual({
      sessionId,
      text: "question",
      ifRunning: "followUp",
    });
    expect(daemon.calls.map(({ method }) => method)).toEqual(["session/subscribe", "session/prompt"]);
    emit(start, says("I look.", { stopReason: "toolUse" }), { type: "agent_end" }, says("It is so."), settled);
    expect(await answer).toBe("It is so.");
    await daemon.called("session/unsubscribe");
  });

  it("is right for a run that is over before the prompt is answered", async () => {
    daemon.answer("session/prompt", () => {
      emit(start, says("quick"), settled);
      return { promptId: "p", disposition: "started" };
    });
    expect(await session.promptAndWait("question")).toBe("quick");
  });

  it("does not take the end of an earlier run, or of a later one, for its own", async () => {
    daemon.answer("session/prompt", () => {
      emit(says("of the run before"), settled, start, says("mine"));
      return { promptId: "p", disposition: "started" };
    });
    const answer = session.promptAndWait("question");
    await daemon.called("session/prompt");
    emit(settled, start, says("of the run after"), settled);
    expect(await answer).toBe("mine");
  });

  it("goes through retries: the last message counts", async () => {
    const answer = session.promptAndWait("question");
    await daemon.called("session/prompt");
    emit(start, says("", { stopReason: "error", errorMessage: "529" }), { type: "agent_end", willRetry: true });
    emit(start, says("second try"), { type: "message_end", message: { role: "toolResult" } }, settled);
    expect(await answer).toBe("second try");
  });

  it("waits, for a prompt that was queued, until the run that is on has settled", async () => {
    daemon.answer("session/prompt", () => ({ promptId: "p", disposition: "queued" }));
    const answer = session.promptAndWait("question", { ifRunning: "steer" });
    await daemon.called("session/prompt");
    emit(says("steered"), settled);
    expect(await answer).toBe("steered");
  });

  it("resolves at once, with no text, for a prompt that an extension handled", async () => {
    daemon.answer("session/prompt", () => ({ promptId: "p", disposition: "handled" }));
    expect(await session.promptAndWait("/command")).toBe("");
    expect(await session.runUntilSettled("/command")).toEqual({ promptId: "p", disposition: "handled", text: "" });
  });

  it.each([
    ["error", "overloaded"],
    ["aborted", undefined],
  ])("rejects when the last message's stop reason is %s", async (stopReason, errorMessage) => {
    const fail = (): void => emit(start, says("half", { stopReason, ...(errorMessage && { errorMessage }) }), settled);
    const answer = session.promptAndWait("question");
    const rejected = expect(answer).rejects.toMatchObject({
      kind: "run_failed",
      run: { text: "half", stopReason },
      message: `The run ended with "${stopReason}"${errorMessage === undefined ? "" : `: ${errorMessage}`}`,
    });
    await daemon.called("session/prompt");
    fail();
    await rejected;
    const run = session.runUntilSettled("question");
    await daemon.called("session/prompt", 2);
    fail();
    expect(await run).toMatchObject({ text: "half", stopReason, message: { role: "assistant" } });
  });

  it("rejects with what the prompt or the subscription was refused with, and leaves nothing behind", async () => {
    daemon.answer("session/prompt", () => {
      throw new WireError("session_busy", "a run is on");
    });
    await expect(session.promptAndWait("question")).rejects.toMatchObject({ kind: "session_busy" });
    await daemon.called("session/unsubscribe");
    daemon.answer("session/subscribe", () => {
      throw new WireError("session_not_found", "No session has this id.");
    });
    await expect(session.promptAndWait("question")).rejects.toMatchObject({ kind: "session_not_found" });
    expect(daemon.seen("session/prompt")).toHaveLength(1);
  });

  const interruptions: readonly [string, () => void][] = [
    ["pi crashes", () => update({ state: "crashed" })],
    [
      "pi loses the prompt",
      () => update({ state: "starting" }, { lostPrompts: [{ promptId: "p", text: "q", length: 1, at: 1 }] }),
    ],
    ["the session is closed", () => update({ state: "closed" })],
  ];
  it.each(interruptions)("rejects when %s", async (_, interrupt) => {
    const answer = session.promptAndWait("question");
    await daemon.called("session/prompt");
    emit(start);
    interrupt();
    await expect(answer).rejects.toMatchObject({ kind: "run_interrupted" });
  });

  it("is not disturbed by a crash that the prompt has woken the session from", async () => {
    daemon.answer("session/prompt", () => {
      update({ state: "crashed" });
      update({ state: "starting" });
      update({ state: "running" }, { lostPrompts: [{ promptId: "another", text: "q", length: 1, at: 1 }] });
      emit(start);
      return { promptId: "p", disposition: "started" };
    });
    const answer = session.promptAndWait("question");
    await daemon.called("session/prompt");
    emit(says("awake"), settled);
    expect(await answer).toBe("awake");
  });

  it("rejects when the socket dies before and after the prompt is answered, and when the client is closed", async () => {
    const running = session.promptAndWait("question");
    await daemon.called("session/prompt");
    await client.info();
    daemon.breakSockets();
    await expect(running).rejects.toMatchObject({ kind: "connection_closed" });

    client = await daemon.connect({ reconnect: false });
    daemon.answer("session/prompt", () => noAnswer);
    const unanswered = client.session(sessionId).promptAndWait("question");
    await daemon.called("session/prompt", 2);
    daemon.breakSockets();
    await expect(unanswered).rejects.toMatchObject({ kind: "connection_closed" });

    client = await daemon.connect({ reconnect: false });
    daemon.answer("session/prompt", () => ({ promptId: "p", disposition: "started" }));
    const rejected = expect(client.session(sessionId).promptAndWait("question")).rejects.toMatchObject({ code: 1000 });
    await daemon.called("session/prompt", 3);
    await client.close();
    await rejected;
  });

  it("ends with its signal's reason, at whatever point", async () => {
    const controller = new AbortController();
    const running = session.promptAndWait("question", { signal: controller.signal });
    await daemon.called("session/prompt");
    await client.info();
    controller.abort(new Error("too long"));
    await expect(running).rejects.toThrow("too long");
    await daemon.called("session/unsubscribe");
    await expect(session.promptAndWait("question", { signal: controller.signal })).rejects.toThrow("too long");
    daemon.answer("session/subscribe", () => noAnswer);
    const second = new AbortController();
    const subscribing = session.promptAndWait("question", { signal: second.signal });
    await daemon.called("session/subscribe", 2);
    second.abort(new Error("far too long"));
    await expect(subscribing).rejects.toThrow("far too long");
    expect(daemon.seen("session/prompt")).toHaveLength(1);
  });
});
