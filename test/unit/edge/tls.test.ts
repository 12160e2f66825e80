import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { OutgoingHttpHeaders } from "node:http";
import { request } from "node:https";
import { connect as connectPlain } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type SecureVersion } from "node:tls";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { readDaemonFile } from "../../../client/discovery.ts";
import { certificateProblem } from "../../../protocol/daemon-file.ts";
import { startDaemon } from "../../../server/daemon.ts";
import { ownHosts, type TlsSettings, tlsListener } from "../../../server/edge/tls.ts";
import {
  authorization,
  expiredTlsFiles,
  json,
  startEdge,
  type TestEdge,
  TestWebSocket,
  tlsFiles,
} from "../../helpers/edge.ts";

const { tlsCert, tlsKey } = tlsFiles;
const listen = "0.0.0.0:8443";
const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

describe("an address beyond loopback", () => {
  it.each<[TlsSettings, string, RegExp]>([
    [{ listen }, "listen_unsafe", /does not listen at 0\.0\.0\.0:8443 without TLS.*Set tlsCert/],
    [{ listen, tlsCert }, "listen_unsafe", /Set tlsKey/],
    [{ listen, tlsKey }, "listen_unsafe", /Set tlsCert/],
    [{ listen: "127.0.0.1:80" }, "listen_unsafe", /without TLS/],
    [{ tlsCert, tlsKey }, "config_invalid", /listen/],
    [
      { listen, tlsCert: "/nowhere.pem", tlsKey },
      "tls_unusable",
      /certificate \/nowhere\.pem cannot be read \(ENOENT\)/,
    ],
    [{ listen, tlsCert, tlsKey: "/nowhere.pem" }, "tls_unusable", /key \/nowhere\.pem cannot be read/],
    [{ listen, tlsCert: "/dev/null", tlsKey }, "tls_unusable", /certificate \/dev\/null .* cannot be used/],
    [{ listen, tlsCert, tlsKey: "/dev/null" }, "tls_unusable", /key \/dev\/null cannot be used/],
    [{ listen, tlsCert, tlsKey: expiredTlsFiles.tlsKey }, "tls_unusable", /cannot be used/],
    [{ listen, tlsCert: tlsKey, tlsKey: tlsCert }, "tls_unusable", /cannot be used/],
    [{ listen: "0.0.0.0", tlsCert, tlsKey }, "config_invalid", /takes an address and a port/],
    [{ listen: "0.0.0.0:70000", tlsCert, tlsKey }, "config_invalid", /takes an address and a port/],
    [{ listen: "::8443", tlsCert, tlsKey }, "config_invalid", /takes an address and a port/],
    [{ listen: "[127.0.0.1]:8443", tlsCert, tlsKey }, "config_invalid", /takes an address and a port/],
    [{ listen: "box.example:8443", tlsCert, tlsKey }, "config_invalid", /takes an address and a port/],
    [{ listen: "/tmp/socket:1", tlsCert, tlsKey }, "config_invalid", /takes an address and a port/],
  ])("as %o is refused: %s", (settings, kind, why) => {
    expect(() => tlsListener(settings)).toThrow(why);
    expect(() => tlsListener(settings)).toThrow(expect.objectContaining({ name: "StartError", kind }));
  });

  it("needs a certificate, otherwise the daemon does not start and leaves nothing", async () => {
    const root = mkdtempSync(join(tmpdir(), "tls-"));
    const config = join(root, "config.json");
    writeFileSync(config, JSON.stringify({ listen }));
    const started = startDaemon({ stateDir: join(root, "s"), config, env: {}, log: pino({ level: "silent" }) });
    await expect(started).rejects.toMatchObject({ name: "StartError", kind: "listen_unsafe" });
    rmSync(root, { recursive: true });
  });

  it("has a certificate whose expiry is in daemon.json, with a warning if it has expired", async () => {
    const root = mkdtempSync(join(tmpdir(), "tls-"));
    const config = join(root, "config.json");
    writeFileSync(config, JSON.stringify({ listen: "127.0.0.1:0", ...expiredTlsFiles }));
    const logged: string[] = [];
    const log = pino({ level: "warn" }, { write: (line) => logged.push(line) });
    const daemon = await startDaemon({ stateDir: join(root, "s"), config, pi: fakePi, env: process.env, log });
    const { tlsUrl, tlsNotBefore, tlsNotAfter } = await readDaemonFile(daemon.stateDir);
    await daemon.stop();
    rmSync(root, { recursive: true });
    expect(tlsUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect([tlsNotBefore, tlsNotAfter]).toEqual([Date.UTC(2020, 0), Date.UTC(2021, 0)]);
    expect(logged.join("")).toContain(`The certificate of ${tlsUrl} expired on 2021-01-01T00:00:00.000Z.`);
    const early = { tlsUrl: "https://a:1", tlsNotBefore: 2, tlsNotAfter: 3 };
    expect([1, 2, 3].map((now) => certificateProblem(early, now))).toEqual([
      "The certificate of https://a:1 is not valid before 1970-01-01T00:00:00.002Z.",
      undefined,
      undefined,
    ]);
  });

  it("is optional: without any of the settings there is none", () => {
    expect(tlsListener({})).toBeUndefined();
  });

  it("has names of its own, unless it is a wildcard address", () => {
    expect(["0.0.0.0", "::", "192.168.1.5", "FE80::1"].map((host) => ownHosts(host, 8443))).toEqual([
      [],
      [],
      ["192.168.1.5:8443"],
      ["[fe80::1]:8443"],
    ]);
    expect(ownHosts("192.168.1.5", 443)).toEqual(["192.168.1.5", "192.168.1.5:443"]);
  });
});

describe("TLS", () => {
  it.each<{ title: string; headers: OutgoingHttpHeaders; status: number }>([
    { title: "the token", headers: json, status: 200 },
    { title: "no token", headers: { "content-type": "application/json" }, status: 401 },
    { title: "a foreign Host", headers: { ...json, host: "evil.example" }, status: 403 },
    { title: "a listed Host", headers: { ...json, host: "box.example:8443" }, status: 200 },
    { title: "a listed Host with another port", headers: { ...json, host: "box.example:8444" }, status: 403 },
    { title: "an Origin", headers: { ...json, origin: "https://evil.example" }, status: 403 },
  ])("admits as loopback does: $title", async ({ headers, status }) => {
    await using edge = await startEdge({ tls: true, allowedHosts: ["box.example:8443"] });
    expect(await ask(edge, headers)).toBe(status);
  });

  it("accepts WebSockets with the token, and refuses them without", async () => {
    await using edge = await startEdge({ tls: true });
    const url = `wss://localhost:${edge.tlsPort}/v1/ws`;
    const refused = new WebSocket(url, { ca: ca() });
    await expect(new Promise((resolve) => refused.once("error", resolve))).resolves.toMatchObject({
      message: "Unexpected server response: 401",
    });
    await using webSocket = new TestWebSocket(new WebSocket(url, { ca: ca(), headers: authorization }));
    await new Promise((resolve) => webSocket.raw.once("open", resolve));
    expect(await webSocket.call("session/list")).toMatchObject({ result: { sessions: [] } });
    await edge.edge.close();
    expect((await webSocket.closed).code).toBe(1001);
  });

  it("is 1.2 at least, and only TLS", async () => {
    await using edge = await startEdge({ tls: true });
    expect(await handshake(edge, "TLSv1.1")).toBe("refused");
    expect(await handshake(edge, "TLSv1.2")).toBe("TLSv1.2");
    expect(await handshake(edge, "TLSv1.3")).toBe("TLSv1.3");
    const plain = connectPlain({ host: "127.0.0.1", port: edge.tlsPort });
    let heard = "";
    plain.setEncoding("latin1").on("data", (text: string) => {
      heard += text;
    });
    plain.on("error", () => {});
    plain.write(`GET /healthz HTTP/1.1\r\nhost: localhost:${edge.tlsPort}\r\n\r\n`);
    await new Promise((resolve) => plain.once("close", resolve));
    expect(heard).not.toContain("HTTP/");
  });

  it("is negotiated only with forward secrecy", async () => {
    await using edge = await startEdge({ tls: expiredTlsFiles });
    const tls12 = (ciphers: string) => handshake(edge, "TLSv1.2", `${ciphers}:@SECLEVEL=0`);
    expect(await tls12("AES128-GCM-SHA256:AES256-GCM-SHA384:AES128-SHA:AES256-SHA256")).toBe("refused");
    expect(await tls12("DHE-RSA-AES128-GCM-SHA256")).toBe("refused");
    expect(await tls12("ECDHE-RSA-AES128-SHA")).toBe("refused");
    expect(await tls12("ECDHE-RSA-AES128-GCM-SHA256")).toBe("TLSv1.2");
    expect(await handshake(edge, "TLSv1.3")).toBe("TLSv1.3");
  });

  it("ends a stalled handshake, and those in progress when the daemon ends", async () => {
    await using slow = await startEdge({ tls: true, limits: { headersTimeoutMs: 50 } });
    await closed(connectPlain({ host: "127.0.0.1", port: slow.tlsPort }));
    const edge = await startEdge({ tls: true });
    const socket = connectPlain({ host: "127.0.0.1", port: edge.tlsPort });
    const ended = closed(socket);
    await new Promise((resolve) => socket.once("connect", resolve));
    expect(await ask(edge, json)).toBe(200);
    await edge[Symbol.asyncDispose]();
    await ended;
  });
});

function ca(): string {
  return readFileSync(tlsCert, "utf8");
}

async function ask(edge: TestEdge, headers: OutgoingHttpHeaders): Promise<number> {
  const where = { host: "localhost", servername: "localhost", port: edge.tlsPort, ca: ca(), agent: false };
  return await new Promise((resolve, reject) => {
    const outgoing = request({ ...where, method: "POST", path: "/v1/rpc", headers }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode ?? 0));
    });
    outgoing.once("error", reject);
    outgoing.end('{"jsonrpc":"2.0","id":1,"method":"session/list"}');
  });
}

async function handshake(edge: TestEdge, version: SecureVersion, ciphers = "DEFAULT@SECLEVEL=0"): Promise<string> {
  const options = {
    host: "localhost",
    port: edge.tlsPort,
    rejectUnauthorized: false,
    minVersion: version,
    maxVersion: version,
    ciphers,
  };
  return await new Promise((resolve) => {
    const socket = connect(options, () => {
      resolve(socket.getProtocol() ?? "");
      socket.destroy();
    });
    socket.once("error", () => resolve("refused"));
  });
}

async function closed(socket: ReturnType<typeof connectPlain>): Promise<void> {
  socket.on("error", () => {}).resume();
  await new Promise((resolve) => socket.once("close", resolve));
}
