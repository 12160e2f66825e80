import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ls } from "../../../cli/ls.ts";
import { PROTOCOL_VERSION } from "../../../protocol/wire.ts";
import { type MemoryOutput, memoryOutput } from "./memory-output.ts";

/** A daemon whose answer to each method the test writes. */
class ScriptedDaemon implements AsyncDisposable {
  readonly stateDir = mkdtempSync(join(tmpdir(), "scripted-"));
  readonly asked: string[] = [];
  readonly #server = createServer();

  async open(answer: (response: ServerResponse) => void, file: object = {}): Promise<this> {
    const socketPath = join(this.stateDir, "s");
    this.#server.on("request", (request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      request.on("end", () => {
        this.asked.push((JSON.parse(body) as { method: string }).method);
        answer(response);
      });
    });
    await new Promise<void>((resolve) => this.#server.listen(socketPath, resolve));
    const own = { pid: process.pid, version: "999.0.0", protocol: PROTOCOL_VERSION, url: "http://127.0.0.1:9" };
    const text = JSON.stringify({ ...own, socketPath, token: "t".repeat(43), ...file });
    writeFileSync(join(this.stateDir, "daemon.json"), text, { mode: 0o600 });
    return this;
  }

  list(options: object = {}): { readonly done: Promise<number>; readonly printed: MemoryOutput } {
    const printed = memoryOutput();
    const { signal } = new AbortController();
    const all = { "state-dir": this.stateDir, ...options };
    return { done: ls({ options: all, arguments: [], output: printed.output, env: {}, signal }), printed };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.stateDir, { recursive: true });
  }
}

const noSessions = (response: ServerResponse): void => {
  response.end('{"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}');
};
const hangUp = ({ socket }: ServerResponse): void => void socket?.destroy();

test("a running daemon is asked once, and a note says that it is older", async () => {
  await using daemon = await new ScriptedDaemon().open(noSessions, { version: "0.0.1" });
  const { done, printed } = daemon.list();
  expect(await done).toBe(0);
  expect(daemon.asked).toEqual(["session/list"]);
  expect(printed.stderr()).toContain("the running daemon is pi-rpcd 0.0.1, older than this command line");
});

test("with --no-start there is no note", async () => {
  await using daemon = await new ScriptedDaemon().open(noSessions, { version: "0.0.1" });
  const { done, printed } = daemon.list({ "no-start": true });
  expect(await done).toBe(0);
  expect(printed.stderr()).toBe("No sessions. Create one with: pi-rpcd new\n");
});

test("a daemon that ends before its answer is asked how it is, and the error says what happened", async () => {
  await using daemon = await new ScriptedDaemon().open(hangUp);
  await expect(daemon.list().done).rejects.toMatchObject({
    kind: "connection_failed",
    message: `Talking to the daemon at ${join(daemon.stateDir, "s")} failed: socket hang up`,
  });
  expect(daemon.asked).toEqual(["session/list", "daemon/info"]);
});

test("a daemon of another version of the protocol is not asked", async () => {
  await using daemon = await new ScriptedDaemon().open(noSessions, { protocol: PROTOCOL_VERSION + 1 });
  await expect(daemon.list().done).rejects.toMatchObject({ kind: "protocol_mismatch" });
  expect(daemon.asked).toEqual([]);
});
