import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo } from "../../../client/browser.ts";
import { FakeDaemon, noAnswer } from "./fake-daemon.ts";
import { daemonInfo, delivery, envelope, sessionId, sessionInfo } from "./fixtures.ts";

const root = resolve(import.meta.dirname, "../../..");
/** Import and export-from declarations, and whether they are types only. */
const declaration = /(?:^|\n)(?:import|export)\s+(type\s+)?(?:[^"'();]*?\sfrom\s+)?["']([^"']+)["']/g;

interface Graph {
  readonly files: ReadonlySet<string>;
  readonly packages: ReadonlySet<string>;
}

/** The files that one of ours loads at run time, found without running it. */
function importsOf(entry: string): Graph {
  const files = new Set<string>();
  const packages = new Set<string>();
  const open = [join(root, entry)];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (files.has(file)) continue;
    files.add(file);
    const text = readFileSync(file, "utf8");
    expect(text, `${file} loads something at a time of its own`).not.toMatch(/\b(?:import|require)\(/);
    for (const [, typeOnly, specifier = ""] of text.matchAll(declaration)) {
      if (typeOnly !== undefined) continue;
      if (!specifier.startsWith(".")) packages.add(specifier);
      else open.push(resolve(dirname(file), specifier));
    }
  }
  return { files, packages };
}

describe("the browser entry", () => {
  it("loads no Node module, no ws and no schema compiler", () => {
    const { files, packages } = importsOf("client/browser.ts");
    expect([...packages].filter((name) => isBuiltin(name))).toEqual([]);
    expect([...packages].sort()).toEqual(["json-rpc-2.0", "uuid"]);
    const names = [...files].map((file) => file.slice(root.length + 1));
    expect(names).not.toContain("protocol/validation.ts");
    expect(names).toContain("client/event-stream.ts");
    expect(names.filter((name) => !/^(client|protocol)\//.test(name))).toEqual([]);
  });

  it("would be caught if it did: the Node entry is", () => {
    const { packages } = importsOf("client/index.ts");
    expect([...packages]).toEqual(expect.arrayContaining(["ws", "ajv", "node:os", "node:net"]));
  });

  it("loads packages that load no Node module either", () => {
    // uuid has a separate build for Node; the one for browsers is in dist.
    for (const entry of ["json-rpc-2.0/dist/index.js", "uuid/dist/index.js"]) {
      const open = [join(root, "node_modules", entry)];
      const seen = new Set<string>();
      for (let file = open.pop(); file !== undefined; file = open.pop()) {
        if (seen.has(file)) continue;
        seen.add(file);
        for (const [, specifier = ""] of readFileSync(file, "utf8").matchAll(
          /(?:from|require\()\s*["']([^"']+)["']/g,
        )) {
          expect(specifier.startsWith("."), `${file} loads ${specifier}`).toBe(true);
          const target = resolve(dirname(file), specifier);
          open.push(existsSync(target) ? target : `${target}.js`);
        }
      }
      expect(seen.size).toBeGreaterThan(1);
    }
  });
});

describe("connectTo", () => {
  it("sends the token as a subprotocol, and works like any client", async () => {
    await using daemon = await FakeDaemon.start();
    const { url, token } = daemon;
    daemon.answer("session/subscribe", () => ({ cursor: 0, epoch: "e" }));
    daemon.answer("delivery/push", ({ deliveryId = "" }) => delivery(deliveryId, ["accepted"]));
    await using client = await connectTo({ url, token });
    expect(await client.info()).toEqual(daemonInfo());
    const [handshake] = daemon.handshakes;
    expect(handshake?.headers["sec-websocket-protocol"]?.split(/, ?/)).toEqual(["pi-rpcd.v1", "pi-rpcd.token.token-1"]);
    expect(handshake?.headers.authorization).toBeUndefined();
    expect(handshake?.url).toBe("/v1/ws");
    const session = client.session(sessionId);
    const stream = session.events();
    await stream.ready;
    daemon.notify("session/event", envelope(1));
    expect((await stream.next()).value).toEqual(envelope(1));
    expect((await session.push({ customType: "a", content: "b" }).accepted).state).toBe("accepted");
    expect(await client.close()).toMatchObject({ kind: "closed", code: 1000 });
  });

  it("asks only which daemon it is at another path, until the instance is the right one", async () => {
    await using daemon = await FakeDaemon.start();
    const { url, token } = daemon;
    let instance = "one";
    daemon.answer("daemon/info", () => daemonInfo({ instance }));
    daemon.answer("session/list", () => noAnswer);
    let greetings = 0;
    daemon.answer("daemon/hello", ({ client }) => {
      greetings += 1;
      return { clientId: client.id ?? "" };
    });
    const refused = connectTo({ url, token, path: "/ws", instance: "two" });
    await expect(refused).rejects.toMatchObject({ kind: "another_daemon" });
    expect([...daemon.calls, greetings]).toEqual([0]);
    await using client = await connectTo({ url, token, path: "/ws", instance: "one", reconnect: { firstDelayMs: 1 } });
    expect(daemon.handshakes.at(-1)?.url).toBe("/ws");
    const waiting = client.call("session/list", {});
    await daemon.called("session/list");
    instance = "two";
    daemon.breakSockets();
    await expect(waiting).rejects.toMatchObject({ kind: "another_daemon" });
    expect(await client.closed).toMatchObject({ kind: "failed", error: { kind: "another_daemon" } });
    expect(daemon.handshakes).toHaveLength(3);
    expect([daemon.calls.map(({ method }) => method), greetings]).toEqual([["session/list"], 1]);
  });

  it("gives advice when the socket does not open", async () => {
    await using daemon = await FakeDaemon.start();
    const refused = connectTo({ url: daemon.url, token: "wrong" });
    await expect(refused).rejects.toMatchObject({
      kind: "connection_failed",
      message: expect.stringContaining("origin"),
    });
    await expect(connectTo({ url: "http://127.0.0.1:9", token: "t" })).rejects.toMatchObject({
      kind: "connection_failed",
    });
  });

  it("refuses a daemon with another protocol", async () => {
    await using daemon = await FakeDaemon.start();
    daemon.answer("daemon/info", () => daemonInfo({ protocol: 2 }));
    const { url, token } = daemon;
    await expect(connectTo({ url, token })).rejects.toMatchObject({ kind: "protocol_mismatch" });
  });

  it("rejects pending calls when the socket breaks, with reconnect: false", async () => {
    await using daemon = await FakeDaemon.start();
    const { url, token } = daemon;
    await using client = await connectTo({ url, token, reconnect: false });
    daemon.answer("session/get", () => noAnswer);
    const rejected = expect(client.session(sessionId).get()).rejects.toMatchObject({
      kind: "connection_closed",
      code: 1006,
    });
    await daemon.called("session/get");
    daemon.breakSockets();
    await rejected;
  });

  it("connects again by itself, and repeats a read", async () => {
    await using daemon = await FakeDaemon.start();
    const { url, token } = daemon;
    await using client = await connectTo({ url, token, reconnect: { firstDelayMs: 1 } });
    daemon.answer("session/get", () => noAnswer);
    const read = client.session(sessionId).get();
    await daemon.called("session/get");
    daemon.answer("session/get", () => sessionInfo());
    daemon.breakSockets();
    expect(await read).toEqual(sessionInfo());
    expect(daemon.handshakes).toHaveLength(2);
  });

  it("does not wait for a daemon that sends no close frame", async () => {
    await using daemon = await FakeDaemon.start();
    const { url, token } = daemon;
    const client = await connectTo({ url, token });
    for (const socket of daemon.sockets) socket.pause();
    expect(await client.close()).toMatchObject({ kind: "closed" });
  });

  it("gives up after connectTimeoutMs, and on the caller's signal with its reason", async () => {
    await using daemon = await FakeDaemon.start();
    const { url, token } = daemon;
    daemon.answer("daemon/info", () => noAnswer);
    await expect(connectTo({ url, token, connectTimeoutMs: 50 })).rejects.toMatchObject({ kind: "timeout" });
    const controller = new AbortController();
    daemon.answer("daemon/info", () => {
      controller.abort(new Error("changed my mind"));
      return noAnswer;
    });
    await expect(connectTo({ url, token, signal: controller.signal })).rejects.toThrow("changed my mind");
    await expect(connectTo({ url, token, signal: controller.signal })).rejects.toThrow("changed my mind");
  });

  it("reports binary and unparsable frames to onDiagnostic", async () => {
    await using daemon = await FakeDaemon.start();
    const { url, token } = daemon;
    const kinds: string[] = [];
    await using client = await connectTo({ url, token, onDiagnostic: ({ kind }) => kinds.push(kind) });
    daemon.sendRaw("{");
    daemon.sendRaw(Buffer.from([1]));
    await client.info();
    expect(kinds).toEqual(["unparsable_frame", "binary_frame"]);
  });
});
