import { describe, expect, it } from "vitest";
import { httpCall } from "../../../client/http-client.ts";
import { WireError } from "../../../protocol/errors.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { daemonInfo, sessionId, sessionInfo } from "./fixtures.ts";

describe("httpCall", () => {
  it("calls by the Unix socket of daemon.json, by a socket, and by a URL", async () => {
    await using daemon = await FakeDaemon.start({ socketName: "with:colon and space.sock" });
    const { stateDir, socketPath, url, token } = daemon;
    daemon.answer("session/get", (params) => sessionInfo(params));
    for (const target of [{ stateDir }, { socketPath, token }, { url, token }]) {
      expect(await httpCall("session/get", { sessionId }, target)).toEqual(sessionInfo());
    }
    expect(daemon.handshakes).toEqual([]);
  });

  it("takes TCP when nothing listens at the socket", async () => {
    await using daemon = await FakeDaemon.start();
    await daemon.stopUnix();
    expect(await httpCall("daemon/info", {}, { stateDir: daemon.stateDir })).toEqual(daemonInfo());
  });

  it("rejects with the daemon's error, whatever the status", async () => {
    await using daemon = await FakeDaemon.start();
    const { stateDir } = daemon;
    daemon.answer("session/get", () => {
      throw new WireError("session_not_found", "No session has this id.", { sessionId });
    });
    const call = (): Promise<unknown> => httpCall("session/get", { sessionId }, { stateDir });
    await expect(call()).rejects.toMatchObject({ kind: "session_not_found", data: { sessionId } });
    const error = { code: -32040, message: "full", data: { name: "overloaded", retryAfterMs: 5 } };
    daemon.refuse = () => ({ status: 503, body: JSON.stringify({ jsonrpc: "2.0", id: null, error }) });
    await expect(call()).rejects.toMatchObject({ kind: "overloaded", data: { retryAfterMs: 5, retryable: true } });
  });

  it("reads daemon.json once more after a refused token, then gives up", async () => {
    await using daemon = await FakeDaemon.start();
    const { stateDir } = daemon;
    daemon.writeFile({ token: "old" });
    daemon.refuse = () => {
      daemon.refuse = undefined;
      daemon.writeFile();
      return { status: 401, body: "" };
    };
    expect(await httpCall("daemon/info", {}, { stateDir })).toEqual(daemonInfo());
    await expect(httpCall("daemon/info", {}, { stateDir, token: "wrong" })).rejects.toMatchObject({
      kind: "unauthorized",
    });
  });

  it("reports that no daemon runs", async () => {
    const daemon = await FakeDaemon.start();
    await daemon[Symbol.asyncDispose]();
    const { stateDir, socketPath } = daemon;
    await expect(httpCall("daemon/info", {}, { stateDir })).rejects.toMatchObject({ reason: "missing" });
    await expect(httpCall("daemon/info", {}, { socketPath, token: "t" })).rejects.toMatchObject({ reason: "refused" });
  });

  it.each(["<html>", "7", "null", "{}", '{"error":"words"}'])("refuses the answer %s", async (body) => {
    await using daemon = await FakeDaemon.start();
    daemon.refuse = () => ({ status: 502, body });
    await expect(httpCall("daemon/info", {}, { stateDir: daemon.stateDir })).rejects.toMatchObject({
      kind: "connection_failed",
      status: 502,
    });
  });

  it("reports that the connection broke before an answer", async () => {
    await using daemon = await FakeDaemon.start();
    const { stateDir, socketPath } = daemon;
    daemon.answer("session/get", () => noAnswer);
    const rejected = expect(httpCall("session/get", { sessionId }, { stateDir })).rejects.toMatchObject({
      kind: "connection_failed",
      message: expect.stringContaining(socketPath),
      cause: { code: "ECONNRESET" },
    });
    await daemon.called("session/get");
    daemon.breakSockets();
    await rejected;
  });

  it("refuses an answer that is too long", async () => {
    await using daemon = await FakeDaemon.start();
    const options = { stateDir: daemon.stateDir, maxAnswerBytes: 100 };
    await expect(httpCall("daemon/info", {}, options)).rejects.toThrow("maxAnswerBytes (100)");
  });

  it("ends with its signal's reason", async () => {
    await using daemon = await FakeDaemon.start();
    const { stateDir } = daemon;
    daemon.answer("session/get", () => noAnswer);
    const controller = new AbortController();
    const call = httpCall("session/get", { sessionId }, { stateDir, signal: controller.signal });
    await daemon.called("session/get");
    controller.abort(new Error("too long"));
    await expect(call).rejects.toThrow("too long");
    await expect(httpCall("daemon/info", {}, { stateDir, signal: controller.signal })).rejects.toThrow("too long");
  });
});
