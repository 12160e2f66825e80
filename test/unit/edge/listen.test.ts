import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import { createEdge, type Edge } from "../../../server/edge/app.ts";
import { createDispatcher } from "../../../server/rpc/dispatcher.ts";
import { fakeCore, http, startEdge, type TestEdge, token } from "../../helpers/edge.ts";
import { soleToken } from "../../helpers/tokens.ts";

interface Place extends AsyncDisposable {
  readonly edge: Edge;
  readonly socketPath: string;
}

/** An edge that does not listen yet. */
function place(): Place {
  const directory = mkdtempSync(join(tmpdir(), "listen-"));
  const log = pino({ level: "silent" });
  const validator = createValidator();
  const dispatcher = createDispatcher({ handlers: fakeCore().handlers, validator, log });
  const edge = createEdge({ dispatcher, tokens: soleToken(token), log });
  return {
    edge,
    socketPath: join(directory, "s"),
    [Symbol.asyncDispose]: async () => {
      await edge.close();
      rmSync(directory, { recursive: true });
    },
  };
}

describe("the Unix socket", () => {
  it("belongs only to its user", async () => {
    await using edge = await startEdge();
    expect(statSync(edge.socketPath).mode & 0o777).toBe(0o600);
  });

  it("replaces one that a killed process has left", async () => {
    await using at = place();
    await leaveStaleSocket(at.socketPath);
    expect(statSync(at.socketPath).isSocket()).toBe(true);
    const { url } = await at.edge.listen({ socketPath: at.socketPath, port: 0 });
    expect((await http(found(at, url), { transport: "unix" })).status).toBe(200);
  });

  it("is removed at the end, unless another one has replaced it", async () => {
    await using at = place();
    await at.edge.listen({ socketPath: at.socketPath, port: 0 });
    unlinkSync(at.socketPath);
    writeFileSync(at.socketPath, "another's");
    await at.edge.close();
    expect(readFileSync(at.socketPath, "utf8")).toBe("another's");
    expect(readdirSync(dirname(at.socketPath))).toEqual(["s"]);
  });

  it("leaves the process's file mode mask unchanged", async () => {
    const before = process.umask();
    await using at = place();
    await at.edge.listen({ socketPath: at.socketPath, port: 0 });
    expect(process.umask()).toBe(before);
  });

  it("never replaces one that is in use", async () => {
    await using first = await startEdge();
    await using at = place();
    const failed = at.edge.listen({ socketPath: first.socketPath, port: 0 });
    await expect(failed).rejects.toMatchObject({ name: "StartError", kind: "daemon_already_running" });
    await at.edge.close();
    expect((await http(first, { transport: "unix" })).status).toBe(200);
  });

  it("never replaces one that is too busy to answer", async () => {
    await using at = place();
    await using busy = await startBusySocket(at.socketPath);
    const failed = at.edge.listen({ socketPath: at.socketPath, port: 0 });
    await expect(failed).rejects.toMatchObject({ kind: "daemon_already_running" });
    expect(statSync(busy.path).isSocket()).toBe(true);
  });

  it("never replaces a file that is not a socket", async () => {
    await using at = place();
    writeFileSync(at.socketPath, "precious");
    const failed = at.edge.listen({ socketPath: at.socketPath, port: 0 });
    await expect(failed).rejects.toMatchObject({ name: "StartError", kind: "address_unavailable" });
    await at.edge.close();
    expect(readFileSync(at.socketPath, "utf8")).toBe("precious");
  });

  it("never replaces a link, even to a socket", async () => {
    await using at = place();
    await using other = await startEdge();
    symlinkSync(other.socketPath, at.socketPath);
    const failed = at.edge.listen({ socketPath: at.socketPath, port: 0 });
    await expect(failed).rejects.toMatchObject({ kind: "address_unavailable" });
    await at.edge.close();
    expect(existsSync(at.socketPath)).toBe(true);
  });

  it("fails if there is no directory", async () => {
    await using at = place();
    const failed = at.edge.listen({ socketPath: join(at.socketPath, "nowhere"), port: 0 });
    await expect(failed).rejects.toMatchObject({ kind: "address_unavailable" });
  });
});

describe("the port", () => {
  it("is the requested one", async () => {
    const port = await unusedPort();
    await using at = place();
    expect(await at.edge.listen({ socketPath: at.socketPath, port })).toEqual({ url: `http://127.0.0.1:${port}` });
  });

  it("that is in use is a StartError", async () => {
    await using first = await startEdge();
    await using at = place();
    const failed = at.edge.listen({ socketPath: at.socketPath, port: first.port });
    await expect(failed).rejects.toMatchObject({ name: "StartError", kind: "port_in_use" });
    expect(existsSync(at.socketPath)).toBe(false);
  });

  it("is free again after close(), if the Unix socket failed", async () => {
    const port = await unusedPort();
    const at = place();
    writeFileSync(at.socketPath, "");
    await expect(at.edge.listen({ socketPath: at.socketPath, port })).rejects.toThrow("is not a socket");
    await at[Symbol.asyncDispose]();
    await using again = place();
    await again.edge.listen({ socketPath: again.socketPath, port });
  });
});

describe("an edge that never listened", () => {
  it("can be closed", async () => {
    await using at = place();
    await at.edge.close();
  });
});

function found(at: Place, url: string): TestEdge {
  return { socketPath: at.socketPath, port: Number(new URL(url).port) } as TestEdge;
}

/** Node removes the path that its server had, and this one has been moved away from it. */
async function leaveStaleSocket(path: string): Promise<void> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(`${path}-elsewhere`, () => {
    renameSync(`${path}-elsewhere`, path);
    server.close(() => resolve());
  });
  await promise;
}

/** A server that accepts no connection: its thread waits, and its queue is full. */
async function startBusySocket(path: string): Promise<AsyncDisposable & { readonly path: string }> {
  const code = `
    const { parentPort, workerData } = require("node:worker_threads");
    require("node:net").createServer().listen({ path: workerData, backlog: 1 }, () => {
      parentPort.postMessage("listens");
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
    });`;
  const worker = new Worker(code, { eval: true, workerData: path });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  worker.once("message", () => resolve());
  worker.once("error", reject);
  await promise;
  const clients = Array.from({ length: 4 }, () => connect(path).on("error", () => {}));
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.destroy();
      await worker.terminate();
    },
  };
}

async function unusedPort(): Promise<number> {
  const server: Server = createServer();
  const { promise, resolve } = Promise.withResolvers<number>();
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as { port: number };
    server.close(() => resolve(port));
  });
  return await promise;
}
