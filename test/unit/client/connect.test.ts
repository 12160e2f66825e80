import { execFile } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { connectTo } from "../../../client/browser.ts";
import { connect } from "../../../client/connect.ts";
import { httpCall } from "../../../client/http-client.ts";
import { errorCatalogue, WireError } from "../../../protocol/errors.ts";
import { patience } from "../../helpers/patience.ts";
import { FakeDaemon } from "./fake-daemon.ts";
import { daemonInfo } from "./fixtures.ts";

const deadPid = 2 ** 30;
/** A path that no socket can have. */
const tooLong = `/${"too-long/".repeat(20)}`;

describe("connect", () => {
  it("finds the daemon by daemon.json and uses its Unix socket, with the token in a header", async () => {
    await using daemon = await FakeDaemon.start();
    await using client = await daemon.connect();
    expect(await client.info()).toEqual(daemonInfo());
    const [handshake] = daemon.handshakes;
    expect(handshake?.socket.remoteAddress).toBeUndefined();
    expect(handshake?.headers).toMatchObject({ authorization: "Bearer token-1", host: "localhost" });
    expect(handshake?.headers["sec-websocket-extensions"]).toBeUndefined();
    expect(handshake?.url).toBe("/v1/ws");
  });

  it.each(["with space.sock", "with:colon.sock", "with%41percent.sock", "with?query#hash.sock"])(
    "connects to a socket called %s",
    async (socketName) => {
      await using daemon = await FakeDaemon.start({ socketName });
      await using client = await daemon.connect();
      expect((await client.info()).pid).toBe(1);
    },
  );

  it("uses TCP if nothing listens on the socket, or it cannot be used", async () => {
    await using daemon = await FakeDaemon.start();
    await using elsewhere = await FakeDaemon.start();
    if (process.platform === "linux") await daemon.stopUnix();
    else daemon.writeFile({ socketPath: tooLong });
    elsewhere.writeFile({ socketPath: tooLong });
    for (const each of [daemon, elsewhere]) {
      await using client = await each.connect();
      expect((await client.info()).pid).toBe(1);
      expect(each.handshakes[0]?.socket.remoteAddress).toBe("127.0.0.1");
    }
  });

  it("sends no token to a dead daemon's port, and reports that its file is stale", async () => {
    await using daemon = await FakeDaemon.start();
    await daemon.stopUnix();
    daemon.writeFile({ pid: deadPid });
    await expect(daemon.connect()).rejects.toMatchObject({
      kind: "daemon_not_running",
      reason: "stale",
      message: expect.stringContaining("pi-rpcd start"),
    });
    expect(daemon.handshakes).toEqual([]);
  });

  it.runIf(process.platform === "linux")(
    "sends no token to the port if the daemon's process id belongs to a process without its files open",
    async () => {
      await using daemon = await FakeDaemon.start();
      const { stateDir, url } = daemon;
      await daemon.stopUnix();
      for (const socketPath of [daemon.socketPath, tooLong]) {
        daemon.writeFile({ socketPath, pid: process.ppid });
        await expect(daemon.connect()).rejects.toMatchObject({ kind: "daemon_not_running", reason: "stale" });
        await expect(httpCall("daemon/info", {}, { stateDir })).rejects.toMatchObject({ reason: "stale" });
      }
      expect([daemon.handshakes, daemon.calls]).toEqual([[], []]);
      await expect(daemon.connect({ url })).rejects.toThrow("requires a token");
      expect(daemon.handshakes.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    },
  );

  it("uses the socket of a daemon whose process it cannot see", async () => {
    await using daemon = await FakeDaemon.start();
    daemon.writeFile({ pid: deadPid });
    await using client = await daemon.connect();
    expect((await client.info()).pid).toBe(1);
  });

  it("reports that nothing listens", async () => {
    const daemon = await FakeDaemon.start();
    const { url, socketPath, stateDir } = daemon;
    await daemon[Symbol.asyncDispose]();
    await expect(connect({ stateDir })).rejects.toMatchObject({ reason: "missing" });
    await expect(connect({ url, token: "t" })).rejects.toMatchObject({ kind: "daemon_not_running", reason: "refused" });
    await expect(connect({ socketPath, url, token: "t" })).rejects.toMatchObject({
      reason: "refused",
      message: expect.stringContaining(`${socketPath} and ${url}`),
    });
  });

  it("reads daemon.json once more after a refused token", async () => {
    await using daemon = await FakeDaemon.start();
    daemon.refuse = () => {
      // The token is rotated while the client connects.
      daemon.refuse = undefined;
      daemon.token = "token-2";
      daemon.writeFile();
      return { status: 401, body: "" };
    };
    await using client = await daemon.connect();
    expect((await client.info()).pid).toBe(1);
    expect(daemon.handshakes.map(({ headers }) => headers.authorization)).toEqual(["Bearer token-1", "Bearer token-2"]);
  });

  it("gives up if the token is still refused", async () => {
    await using daemon = await FakeDaemon.start();
    daemon.writeFile({ token: "wrong" });
    await expect(daemon.connect()).rejects.toMatchObject({ kind: "unauthorized", name: "UnauthorizedError" });
    expect(daemon.handshakes).toHaveLength(1);
    await expect(daemon.connect({ token: "mine" })).rejects.toThrow("does not accept the token");
  });

  it("sends the file's token only to the addresses in the file", async () => {
    await using daemon = await FakeDaemon.start();
    await using other = await FakeDaemon.start();
    const { stateDir } = daemon;
    await using byUrl = await connect({ stateDir, url: daemon.url.replace("127.0.0.1", "localhost") });
    await using bySocket = await connect({ stateDir, socketPath: daemon.socketPath });
    expect(await Promise.all([byUrl.info(), bySocket.info()])).toHaveLength(2);
    await expect(connect({ stateDir, url: other.url })).rejects.toThrow("requires a token");
    await expect(connect({ stateDir, socketPath: other.socketPath })).rejects.toThrow("requires a token");
    expect(other.handshakes.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined]);
    await using given = await connect({ stateDir, url: other.url, token: other.token });
    expect((await given.info()).pid).toBe(1);
  });

  it.each(["http://192.0.2.1:9", "ws://daemon.example", "http://127.0.0.1.example:9", "http://localhost@192.0.2.1"])(
    "sends no token to %s, which is neither local nor encrypted",
    async (url) => {
      const refused = { name: "TypeError", message: expect.stringMatching(/ unencrypted\. .*allowPlaintext/) };
      await expect(connect({ url, token: "t" })).rejects.toMatchObject(refused);
      await expect(httpCall("daemon/info", {}, { url, token: "t" })).rejects.toMatchObject(refused);
      await expect(connectTo({ url, token: "t" })).rejects.toMatchObject(refused);
    },
  );

  it("asks a daemon given by address for its protocol", async () => {
    await using daemon = await FakeDaemon.start();
    daemon.answer("daemon/info", () => daemonInfo({ protocol: 9, version: "9.0.0" }));
    const { url, token } = daemon;
    await expect(connect({ url, token })).rejects.toMatchObject({ kind: "protocol_mismatch", daemonProtocol: 9 });
    expect(daemon.sockets.size).toBe(0);
  });

  it("forwards the daemon's own refusal", async () => {
    await using daemon = await FakeDaemon.start();
    const error = { code: errorCatalogue.shutting_down.code, message: "about to end", data: { name: "shutting_down" } };
    daemon.refuse = () => ({ status: 503, body: JSON.stringify({ jsonrpc: "2.0", id: null, error }) });
    const refused = daemon.connect();
    await expect(refused).rejects.toBeInstanceOf(WireError);
    await expect(refused).rejects.toMatchObject({ kind: "shutting_down", message: "about to end" });
    daemon.refuse = () => ({ status: 404, body: "no such page" });
    await expect(daemon.connect()).rejects.toMatchObject({
      kind: "connection_failed",
      status: 404,
      message: expect.stringContaining("no such page"),
    });
    daemon.refuse = () => ({ status: 403, body: JSON.stringify({ title: "Forbidden", detail: "foreign Host" }) });
    await expect(daemon.connect()).rejects.toThrow("403: foreign Host");
  });

  it("gives up after connectTimeoutMs, and on the caller's signal with its reason", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `http://127.0.0.1:${(silent.address() as { port: number }).port}`;
    await expect(connect({ url, token: "t", connectTimeoutMs: 20 })).rejects.toMatchObject({
      kind: "timeout",
      message: "Connecting to the daemon took longer than 20 ms.",
    });
    const controller = new AbortController();
    const connecting = connect({ url, token: "t", signal: controller.signal });
    silent.once("connection", () => controller.abort(new Error("changed my mind")));
    await expect(connecting).rejects.toThrow("changed my mind");
    await expect(connect({ url, token: "t", signal: controller.signal })).rejects.toThrow("changed my mind");
    silent.close();
  });

  it("describes the answer of an address that is not a daemon", async () => {
    const babbling = createServer((socket) => socket.end("hello?\r\n\r\n")).listen(0, "127.0.0.1");
    await once(babbling, "listening");
    const url = `http://127.0.0.1:${(babbling.address() as { port: number }).port}`;
    await expect(connect({ url, token: "t" })).rejects.toMatchObject({
      kind: "connection_failed",
      message: expect.stringContaining(url),
    });
    await expect(connect({ url: "ftp://127.0.0.1", token: "t" })).rejects.toThrow("http:, https:, ws: or wss:");
    babbling.close();
  });

  it("lets the process end once the client is closed, whatever timers are pending", async () => {
    await using daemon = await FakeDaemon.start();
    const entry = join(import.meta.dirname, "../../../client/index.ts");
    const script = `
      import { connect } from ${JSON.stringify(entry)};
      const client = await connect({ stateDir: ${JSON.stringify(daemon.stateDir)}, connectTimeoutMs: 3_600_000 });
      await client.call("daemon/info", {}, { signal: AbortSignal.timeout(3_600_000) });
      await client.close();
      console.log("closed");
    `;
    const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", script];
    const { stdout } = await promisify(execFile)(process.execPath, args, patience);
    expect(stdout).toBe("closed\n");
  });

  it("reads the state directory from the environment", async () => {
    await using daemon = await FakeDaemon.start();
    const before = process.env["PI_RPCD_STATE_DIR"];
    process.env["PI_RPCD_STATE_DIR"] = daemon.stateDir;
    try {
      await using client = await connect();
      expect((await client.info()).pid).toBe(1);
      rmSync(join(daemon.stateDir, "daemon.json"));
      await expect(connect()).rejects.toMatchObject({ reason: "missing" });
    } finally {
      if (before === undefined) delete process.env["PI_RPCD_STATE_DIR"];
      else process.env["PI_RPCD_STATE_DIR"] = before;
    }
  });
});
