import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Client } from "../../../client/client.ts";
import type { FeedListener } from "../../../client/session-feed.ts";
import type { SessionHandle } from "../../../client/session-handle.ts";
import { WireError } from "../../../protocol/errors.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { envelope, sessionId, sessionInfo } from "./fixtures.ts";

let daemon: FakeDaemon;
let client: Client;
let session: SessionHandle;

beforeEach(async () => {
  daemon = await FakeDaemon.start();
  client = await daemon.connect({ reconnect: false });
  session = client.session(sessionId);
  daemon.answer("session/prompt", () => ({ promptId: "p", disposition: "started" }));
});

afterEach(async () => {
  await client.close();
  await daemon[Symbol.asyncDispose]();
});

describe("a session's calls", () => {
  it("carry its id and the given params, and nothing else", async () => {
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

it("has methods for the most common of pi's commands", async () => {
  daemon.answer("session/bash", () => ({
    bashId: "b",
    output: "hi\n",
    exitCode: 0,
    cancelled: false,
    truncated: false,
  }));
  daemon.answer("session/setModel", () => ({ provider: "p", id: "m" }));
  const compaction = { summary: "s", firstKeptEntryId: "e", tokensBefore: 1 };
  daemon.answer("session/compact", () => ({ compaction, deliveries: [] }));
  const idempotencyKey = "k";
  expect((await session.bash("echo hi", { bashId: "b", idempotencyKey })).output).toBe("hi\n");
  expect((await session.setModel("p", "m")).id).toBe("m");
  expect((await session.compact({ customInstructions: "names", idempotencyKey })).compaction).toEqual(compaction);
  expect(daemon.calls.map(({ method, params }) => [method, params])).toEqual([
    ["session/bash", { sessionId, command: "echo hi", bashId: "b", idempotencyKey }],
    ["session/setModel", { sessionId, provider: "p", modelId: "m" }],
    ["session/compact", { sessionId, customInstructions: "names", idempotencyKey }],
  ]);
});

describe("a prompt's run", () => {
  const over = { promptId: "p", disposition: "started", state: "inserted", runId: "r" } as const;

  it("is awaited by the prompt's id, after the prompt's answer", async () => {
    daemon.answer("prompt/wait", () => ({ ...over, outcome: "settled", text: "It is so.", stopReason: "stop" }));
    const call = session.prompt("question", { ifRunning: "followUp" });
    expect(await call).toEqual({ promptId: "p", disposition: "started" });
    expect(await call.settled()).toEqual({ ...over, outcome: "settled", text: "It is so.", stopReason: "stop" });
    expect(daemon.calls.map(({ method, params }) => [method, params])).toEqual([
      ["session/prompt", { sessionId, text: "question", ifRunning: "followUp" }],
      ["prompt/wait", { promptId: "p", timeoutMs: 60_000 }],
    ]);
    expect(await session.promptAndWait("question")).toBe("It is so.");
    daemon.answer("session/steer", () => ({ promptId: "q", disposition: "queued" }));
    expect((await session.steer("more").settled()).text).toBe("It is so.");
  });

  it("is asked for again until it ends", async () => {
    let asked = 0;
    daemon.answer("prompt/wait", () => {
      asked += 1;
      if (asked < 3) throw new WireError("deadline_exceeded", "not yet");
      return { ...over, outcome: "settled", text: "late" };
    });
    expect(await session.promptAndWait("question")).toBe("late");
  });

  it("is absent, with no text, for a prompt that an extension handled", async () => {
    daemon.answer("session/prompt", () => ({ promptId: "p", disposition: "handled" }));
    expect(await session.promptAndWait("/command")).toBe("");
    const handled = { promptId: "p", disposition: "handled", state: "handled", text: "" };
    expect(await session.runUntilSettled("/command")).toEqual(handled);
    expect(daemon.seen("prompt/wait")).toEqual([]);
  });

  it.each([
    ["failed", "overloaded", { kind: "run_failed", message: "The run failed: overloaded" }],
    ["aborted", undefined, { kind: "run_failed", message: "The run was aborted" }],
    ["interrupted", undefined, { kind: "run_interrupted" }],
  ] as const)("that is %s rejects promptAndWait, and resolves runUntilSettled", async (outcome, error, rejection) => {
    daemon.answer("prompt/wait", () => ({ ...over, outcome, text: "half", ...(error !== undefined && { error }) }));
    await expect(session.promptAndWait("question")).rejects.toMatchObject({
      ...rejection,
      run: { text: "half", outcome },
    });
    expect(await session.runUntilSettled("question")).toMatchObject({ outcome, text: "half" });
  });

  it("rejects with the refusal of the prompt, and by name when the session was closed", async () => {
    daemon.answer("prompt/wait", () => {
      throw new WireError("session_closed", "closed");
    });
    await expect(session.promptAndWait("question")).rejects.toMatchObject({ kind: "run_interrupted", run: undefined });
    daemon.answer("session/prompt", () => {
      throw new WireError("session_busy", "a run is on");
    });
    await expect(session.promptAndWait("question")).rejects.toMatchObject({ kind: "session_busy" });
    expect(daemon.seen("prompt/wait")).toHaveLength(1);
  });

  it("rejects when the connection is lost for good, and when the client is closed", async () => {
    daemon.answer("prompt/wait", () => noAnswer);
    const running = session.promptAndWait("question");
    await daemon.called("prompt/wait");
    daemon.breakSockets();
    await expect(running).rejects.toMatchObject({ kind: "connection_closed" });
    client = await daemon.connect({ reconnect: false });
    const rejected = expect(client.session(sessionId).promptAndWait("question")).rejects.toMatchObject({ code: 1000 });
    await daemon.called("prompt/wait", 2);
    await client.close();
    await rejected;
  });

  it("ends with its signal's reason, at any point", async () => {
    daemon.answer("prompt/wait", () => noAnswer);
    const controller = new AbortController();
    const running = session.promptAndWait("question", { signal: controller.signal });
    await daemon.called("prompt/wait");
    controller.abort(new Error("too long"));
    await expect(running).rejects.toThrow("too long");
    await expect(session.promptAndWait("question", { signal: controller.signal })).rejects.toThrow("too long");
    expect(daemon.seen("session/prompt")).toHaveLength(1);
  });
});

describe("waiting for a session", () => {
  it("asks the daemon, which knows when it is idle", async () => {
    daemon.answer("session/waitForIdle", () => ({ state: "idle", cursor: 7 }));
    expect(await session.waitForIdle({ timeoutMs: 5 })).toEqual({ state: "idle", cursor: 7 });
    expect(daemon.calls.at(-1)?.params).toEqual({ sessionId, timeoutMs: 5 });
  });
});

/** Writes down what it is told. */
function writer(told: string[]): FeedListener {
  return {
    begin: ({ cursor }) => told.push(`begin ${cursor}`),
    resume: ({ cursor }) => told.push(`resume ${cursor}`),
    gap: () => told.push("gap"),
    receive: ({ params }) => told.push(`event ${params.seq}`),
    end: ({ kind }) => told.push(kind),
  };
}

it("what arrives together with the answer to a subscription is told before a later answer", async () => {
  daemon.answer("session/subscribe", () => noAnswer);
  daemon.answer("session/bash", () => noAnswer);
  const told: string[] = [];
  const done = Promise.withResolvers<void>();
  session.listen(writer(told), { after: 0 });
  const onAnswer = (): void => {
    told.push("answer");
    done.resolve();
  };
  const answered = client.call("session/bash", { sessionId, command: "true" }, { onAnswer });
  const [subscribe, bash] = await Promise.all([daemon.called("session/subscribe"), daemon.called("session/bash")]);
  const data = { output: "", exitCode: 0, cancelled: false, truncated: false, bashId: "b" };
  // In one frame: nothing else runs in between.
  daemon.sendRaw(
    JSON.stringify([
      { jsonrpc: "2.0", id: subscribe.id, result: { cursor: 0, epoch: "e" } },
      { jsonrpc: "2.0", method: "session/event", params: envelope(1) },
      { jsonrpc: "2.0", id: bash.id, result: data },
    ]),
  );
  await Promise.all([done.promise, answered]);
  expect(told).toEqual(["begin 0", "event 1", "answer"]);
});

it("a listener that fails at its beginning is reported, and calls go on", async () => {
  const diagnostics: string[] = [];
  const other = await daemon.connect({ reconnect: false, onDiagnostic: ({ kind }) => diagnostics.push(kind) });
  daemon.answer("session/subscribe", () => ({ cursor: 0, epoch: "e" }));
  daemon.answer("session/get", () => sessionInfo());
  const begin = (): never => {
    throw new Error("It fails.");
  };
  other.session(sessionId).listen({ ...writer([]), begin });
  expect(await other.session(sessionId).get()).toEqual(sessionInfo());
  expect(diagnostics).toEqual(["listener_failed"]);
  await other.close();
});

it("a second answer to a subscription begins nothing again", async () => {
  daemon.answer("session/subscribe", () => noAnswer);
  const told: string[] = [];
  session.listen(writer(told), { after: 0 });
  const { id } = await daemon.called("session/subscribe");
  const answer = { jsonrpc: "2.0", id, result: { cursor: 0, epoch: "e" } };
  const event = { jsonrpc: "2.0", method: "session/event", params: envelope(1) };
  daemon.sendRaw(JSON.stringify([answer, event, answer, event]));
  await expect.poll(() => told.at(-1)).toBe("event 1");
  // Nothing of that frame is left to be told.
  await client.call("session/get", { sessionId }).catch(() => {});
  expect(told).toEqual(["begin 0", "event 1"]);
});
