import { describe, expect, it } from "vitest";
import type { Diagnostic } from "../../../client/diagnostic.ts";
import { ConnectionClosedError } from "../../../client/local-errors.ts";
import { type ErrorName, errorCatalogue, WireError } from "../../../protocol/errors.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { daemonInfo, envelope, sessionId, sessionInfo } from "./fixtures.ts";

describe("a call", () => {
  it("is typed by the method table and returns the result", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    daemon.answer("session/list", () => ({ sessions: [sessionInfo()] }));
    const { sessions } = await client.call("session/list", { cwd: "/work" });
    expect(sessions).toEqual([sessionInfo()]);
    expect(await client.listSessions()).toEqual([sessionInfo()]);
    expect(daemon.seen("session/list").map(({ params }) => params)).toEqual([{ cwd: "/work" }, {}]);
  });

  it("gets its own answer, in whatever order answers arrive", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    const gate = Promise.withResolvers<void>();
    daemon.answer("session/get", async (params) => {
      if (params.sessionId === "slow") await gate.promise;
      return sessionInfo({ sessionId: params.sessionId });
    });
    const slow = client.session("slow").get();
    expect((await client.session("quick").get()).sessionId).toBe("quick");
    gate.resolve();
    expect((await slow).sessionId).toBe("slow");
  });

  it.each(["workspace/ask", "constructor", "__proto__"])(
    "is not sent for a method that does not exist, and the error names it: %s",
    async (method) => {
      await using daemon = await FakeDaemon.start();
      await using client = await daemon.connect();
      await expect(client.call(method as never, {} as never)).rejects.toMatchObject({
        name: "UnknownMethodError",
        kind: "unknown_method",
        message: expect.stringContaining(`"${method}" was not sent`),
      });
    },
  );

  it("is not sent with params that violate the schema", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    await expect(client.createSession({ cwd: "", model: "--evil" })).rejects.toMatchObject({
      kind: "invalid_params",
      method: "session/create",
      findings: [{ path: "/cwd" }, { path: "/model" }],
      message: expect.stringContaining("session/create was not sent: /cwd"),
    });
    expect(daemon.seen("session/create")).toEqual([]);
  });

  it("is sent unchanged with validate: false", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect({ validate: false });
    daemon.answer("session/create", ({ cwd }) => {
      throw new WireError("invalid_params", `bad ${cwd}`);
    });
    await expect(client.createSession({ cwd: "" })).rejects.toMatchObject({ kind: "invalid_params", code: -32602 });
    const circular: { type: string; self?: unknown } = { type: "x" };
    circular.self = circular;
    await expect(client.session(sessionId).command(circular)).rejects.toThrow("circular");
  });

  it.each(Object.keys(errorCatalogue) as ErrorName[])("rejects with the daemon's original %s", async (name) => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect({ reconnect: false });
    const thrown = new WireError(name, "what, why, what to do", { retryAfterMs: 5, findings: [{ path: "/a" }] });
    daemon.answer("session/get", () => {
      throw thrown;
    });
    const caught: unknown = await client
      .session(sessionId)
      .get()
      .catch((error: unknown) => error);
    expect(caught).toBeInstanceOf(WireError);
    const { code, kind, data, message } = caught as WireError;
    expect({ code, kind, data, message }).toEqual({
      code: thrown.code,
      kind: name,
      data: thrown.data,
      message: thrown.message,
    });
    expect((caught as WireError).stack).toContain("client.test.ts");
  });

  it("keeps the code and the data of an error that only a newer daemon knows", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    daemon.answer("session/get", (_, { id }) => {
      const error = { code: -32099, message: "from the future", data: { name: "time_travel", retryable: true } };
      daemon.sendRaw(JSON.stringify({ jsonrpc: "2.0", id, error }));
      return noAnswer;
    });
    await expect(client.session(sessionId).get()).rejects.toMatchObject({
      kind: "unknown_daemon_error",
      code: -32099,
      message: "from the future",
      data: { name: "time_travel", retryable: true },
    });
  });

  it("takes the name from the code when an error has no data, and never from a prototype", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    const answers = [
      { code: -32601 },
      { code: -32601, data: { name: "constructor" } },
      { code: -32601, data: { name: "conflict" } },
    ];
    daemon.answer("session/get", (_, { id }) => {
      daemon.sendRaw(JSON.stringify({ jsonrpc: "2.0", id, error: { message: "m", ...answers.shift() } }));
      return noAnswer;
    });
    await expect(client.session(sessionId).get()).rejects.toMatchObject({ kind: "method_not_found" });
    await expect(client.session(sessionId).get()).rejects.toMatchObject({ kind: "method_not_found" });
    await expect(client.session(sessionId).get()).rejects.toMatchObject({ kind: "unknown_daemon_error" });
  });

  it("ends with its signal's reason and notifies the daemon; the late answer is dropped", async () => {
    const diagnostics: Diagnostic[] = [];
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect({ onDiagnostic: (diagnostic) => diagnostics.push(diagnostic) });
    const gate = Promise.withResolvers<void>();
    daemon.answer("session/get", async () => {
      await gate.promise;
      return sessionInfo();
    });
    const controller = new AbortController();
    const call = client.session(sessionId).get({ signal: controller.signal });
    const { id } = await daemon.called("session/get");
    controller.abort(new Error("no longer wanted"));
    await expect(call).rejects.toThrow("no longer wanted");
    expect((await daemon.called("$/cancelRequest")).params).toEqual({ id });
    gate.resolve();
    await client.info();
    expect(diagnostics).toEqual([]);
    await expect(client.info({ signal: controller.signal })).rejects.toThrow("no longer wanted");
    daemon.answer("session/get", () => noAnswer);
    await expect(client.session(sessionId).get({ signal: AbortSignal.timeout(1) })).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });
});

describe("the end of a connection", () => {
  it("rejects pending calls when the socket breaks, and resolves `closed`, with reconnect: false", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect({ reconnect: false });
    daemon.answer("session/get", () => noAnswer);
    const calls = [client.session("a").get(), client.session("b").get()];
    await daemon.called("session/get", 2);
    daemon.breakSockets();
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { kind: "connection_closed", code: 1006 } });
    }
    expect(await client.closed).toMatchObject({ kind: "ended", code: 1006 });
    await expect(client.info()).rejects.toBeInstanceOf(ConnectionClosedError);
  });

  it("carries the daemon's close code and reason", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect({ reconnect: false });
    daemon.answer("session/get", () => noAnswer);
    const rejected = expect(client.session(sessionId).get()).rejects.toMatchObject({
      code: 1013,
      reason: "resume after 7",
      message: expect.stringContaining("code 1013: resume after 7"),
    });
    await daemon.called("session/get");
    daemon.closeSockets(1013, "resume after 7");
    await rejected;
  });

  it("is one promise, however often it is closed", async () => {
    await using daemon = await FakeDaemon.start();
    const client = await daemon.connect();
    daemon.answer("session/get", () => noAnswer);
    const pending = expect(client.session(sessionId).get()).rejects.toMatchObject({ code: 1000 });
    const first = client.close();
    expect(client.close()).toBe(first);
    await pending;
    expect(await first).toEqual({ kind: "closed", code: 1000, reason: "closed by the client" });
    expect(client.close()).toBe(first);
    await client[Symbol.asyncDispose]();
    await expect(client.info()).rejects.toMatchObject({ kind: "connection_closed" });
  });

  it("does not wait for a daemon that sends no close frame", async () => {
    await using daemon = await FakeDaemon.start();
    const client = await daemon.connect();
    for (const socket of daemon.sockets) socket.pause();
    expect(await client.close()).toMatchObject({ kind: "closed" });
  });

  it("follows a frame that is too large", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect({ maxFrameBytes: 1_000 });
    daemon.sendRaw(" ".repeat(2_000));
    const end = await client.closed;
    expect(end).toMatchObject({ kind: "ended", error: { message: expect.stringContaining("Max payload size") } });
  });
});

describe("an invalid frame from the daemon", () => {
  it("is reported to onDiagnostic, and breaks nothing", async () => {
    const diagnostics: Diagnostic[] = [];
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect({
      validateResults: false,
      onDiagnostic: (diagnostic) => {
        diagnostics.push(diagnostic);
        throw new Error("a listener that fails");
      },
    });
    const frames = [
      "{not json",
      Buffer.from([1, 2, 3]),
      "null",
      "7",
      JSON.stringify({ jsonrpc: "2.0", id: 99, result: {} }),
      JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "The text is not JSON." } }),
      JSON.stringify({ jsonrpc: "2.0", id: 1, method: "workspace/ask", params: {} }),
      JSON.stringify({ jsonrpc: "2.0", method: "session/sparkle", params: { sessionId } }),
      JSON.stringify({ jsonrpc: "2.0", method: "session/event", params: null }),
      JSON.stringify({ jsonrpc: "2.0", method: "session/event", params: { sessionId, seq: "1" } }),
      JSON.stringify({ jsonrpc: "2.0", method: "session/updated", params: { sessionId, seq: 1 } }),
      JSON.stringify({ jsonrpc: "2.0", method: "delivery/updated", params: { sessionId, seq: 1, delivery: {} } }),
      JSON.stringify({
        jsonrpc: "2.0",
        method: "session/formerText",
        params: { sessionId, toolCallId: "t", path: "/" },
      }),
    ];
    for (const frame of frames) daemon.sendRaw(frame);
    expect(await client.info()).toEqual(daemonInfo());
    expect(diagnostics.map(({ kind }) => kind)).toEqual([
      "unparsable_frame",
      "binary_frame",
      ...Array.from({ length: 5 }, () => "unexpected_message"),
      "unknown_notification",
      ...Array.from({ length: 5 }, () => "malformed_notification"),
    ]);
    expect(diagnostics[0]).toMatchObject({ text: "{not json", error: expect.any(SyntaxError) });
  });

  it.each([
    ["too many parts", { maxJsonParts: 40 }, { labels: Array.from({ length: 60 }, (_, n) => n) }],
    ["too deep", { maxDepth: 5 }, { labels: { a: { b: { c: [[]] } } } }],
    [
      "too many keys",
      { maxObjectKeys: 12 },
      { labels: Object.fromEntries(Array.from("abcdefghijklm", (key) => [key, 1])) },
    ],
    ["keys that are not allowed", {}, { labels: JSON.parse('{"__proto__":1}') as unknown }],
  ])("may be an answer without an id, which rejects the call that has %s", async (_, limit, large) => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect({ validate: false });
    daemon.answer("session/get", () => noAnswer);
    daemon.answer("session/create", () => {
      const data = { name: "invalid_request", retryable: false, ...limit };
      daemon.sendRaw(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "No.", data } }));
      return noAnswer;
    });
    const other = new AbortController();
    const waiting = client.call("session/get", { sessionId }, { signal: other.signal });
    await daemon.called("session/get");
    const refused = client.call("session/create", { cwd: "/work {[:,", ...large } as never);
    await expect(refused).rejects.toMatchObject({ kind: "invalid_request" });
    other.abort(new Error("still waiting"));
    await expect(waiting).rejects.toThrow("still waiting");
  });

  it.each([{ error: "broken" }, { error: null }, {}])(
    "may be an answer like %j, which rejects its call",
    async (odd) => {
      await using daemon = await FakeDaemon.start();
      await using client = await daemon.connect();
      daemon.answer("session/get", (_, { id }) => {
        daemon.sendRaw(JSON.stringify({ jsonrpc: "2.0", id, ...odd }));
        return noAnswer;
      });
      await expect(client.session(sessionId).get()).rejects.toMatchObject({
        kind: "protocol_violation",
        subject: "answer",
      });
      expect(await client.info()).toEqual(daemonInfo());
    },
  );

  it("reads batches", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    daemon.answer("session/get", (_, { id }) => {
      const event = { jsonrpc: "2.0", method: "session/event", params: envelope(1) };
      daemon.sendRaw(JSON.stringify([event, { jsonrpc: "2.0", id, result: sessionInfo() }]));
      return noAnswer;
    });
    expect(await client.session(sessionId).get()).toEqual(sessionInfo());
  });

  it("is an error with validateResults: for a result, of its call only", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    daemon.answer("session/get", () => ({ ...sessionInfo(), cursor: -1 }));
    await expect(client.session(sessionId).get()).rejects.toMatchObject({
      kind: "protocol_violation",
      subject: "result of session/get",
      findings: [{ path: "/cursor" }],
    });
    expect(await client.info()).toEqual(daemonInfo());
  });

  it("is an error with validateResults: for a notification, of the whole connection", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    daemon.answer("session/get", () => noAnswer);
    const call = client.session(sessionId).get();
    await daemon.called("session/get");
    daemon.notify("session/event", { ...envelope(1), generation: 0 });
    await expect(call).rejects.toMatchObject({ kind: "protocol_violation", subject: "notification session/event" });
    expect(await client.closed).toMatchObject({ kind: "failed", code: 1002, error: { kind: "protocol_violation" } });
    await expect(client.info()).rejects.toMatchObject({ kind: "protocol_violation" });
  });

  it("is checked when PI_RPCD_VALIDATE is 1", async () => {
    await using daemon = await FakeDaemon.start();
    daemon.answer("daemon/info", () => daemonInfo({ pid: 0.5 }));
    const before = process.env["PI_RPCD_VALIDATE"];
    try {
      process.env["PI_RPCD_VALIDATE"] = "1";
      const { connect } = await import("../../../client/connect.ts");
      await using checking = await connect({ stateDir: daemon.stateDir });
      await expect(checking.info()).rejects.toMatchObject({ kind: "protocol_violation" });
      delete process.env["PI_RPCD_VALIDATE"];
      await using trusting = await connect({ stateDir: daemon.stateDir });
      expect((await trusting.info()).pid).toBe(0.5);
    } finally {
      if (before !== undefined) process.env["PI_RPCD_VALIDATE"] = before;
    }
  });
});
