import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import {
  createMessageConnection,
  type MessageConnection,
  NotificationType,
  RequestType,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import type { Delivery } from "../../../protocol/delivery.ts";
import type { SessionInfo } from "../../../protocol/session.ts";
import { main } from "../../helpers/programs.ts";
import { errorName, lines, Scene } from "../cli/scene.ts";

interface Response {
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly data: { readonly name: string } };
}

/** `pi-rpcd connect` as an editor starts it, with the client library of Visual Studio Code. */
class Editor implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #connection: MessageConnection;

  constructor(scene: Scene) {
    this.#child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", main, "connect", "--framing", "content-length"],
      { cwd: scene.cwd, env: scene.env, stdio: ["pipe", "pipe", "inherit"] },
    );
    const { stdin, stdout } = this.#child;
    if (stdin === null || stdout === null) throw new Error("it has no pipes");
    this.#connection = createMessageConnection(new StreamMessageReader(stdout), new StreamMessageWriter(stdin));
    this.#connection.listen();
  }

  call<R>(method: string, params: object): Promise<R> {
    return this.#connection.sendRequest(new RequestType<object, R, void>(method), params);
  }

  onNotification(method: string, listener: (params: Readonly<Record<string, unknown>>) => void): void {
    this.#connection.onNotification(new NotificationType<Readonly<Record<string, unknown>>>(method), listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = this.#child.exitCode === null ? once(this.#child, "exit") : undefined;
    this.#connection.end();
    this.#connection.dispose();
    this.#child.stdin?.end();
    await exited;
  }
}

describe("connect --framing content-length", () => {
  test("lets vscode-jsonrpc create a session, prompt, stream, push and receive its delivery", async () => {
    await using scene = await Scene.open();
    await using editor = new Editor(scene);
    const { sessionId } = await editor.call<SessionInfo>("session/create", { cwd: scene.cwd });
    const words: string[] = [];
    const settled = Promise.withResolvers<void>();
    editor.onNotification("session/event", ({ event }) => {
      const { type, assistantMessageEvent } = event as {
        type: string;
        assistantMessageEvent?: { type: string; delta: string };
      };
      if (assistantMessageEvent?.type === "text_delta") words.push(assistantMessageEvent.delta);
      if (type === "agent_settled") settled.resolve();
    });
    await editor.call("session/subscribe", { sessionId });
    await editor.call("session/prompt", { sessionId, text: "Grüße, 世界" });
    await settled.promise;
    expect(words.join("")).not.toBe("");
    const { state } = await editor.call<Delivery>("delivery/push", {
      sessionId,
      customType: "editor.selection",
      content: "a selection",
      until: "delivered",
    });
    expect(["delivered", "answered"]).toContain(state);
    await expect(editor.call("session/get", { sessionId: "0".repeat(36) })).rejects.toThrow(/session/);
  });
});

describe("connect", () => {
  test("answers each message of a pipe, and ends when its input has ended and everything is answered", async () => {
    await using scene = await Scene.open();
    const stdin = [
      '{"jsonrpc":"2.0","id":"a","method":"daemon/info","params":{}}',
      '{"jsonrpc":"2.0","method":"daemon/info","params":{}}',
      "not JSON",
      "",
      '[{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}},{"jsonrpc":"2.0","id":2,"method":"foobar"}]\r',
      '{"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}',
    ].join("\n");
    const { code, stdout, stderr } = await scene.run(["connect"], { stdin: `${stdin}\n` });
    expect([code, stderr]).toEqual([0, ""]);
    const responses = lines<Response | Response[]>(stdout).flat();
    expect(responses.map(({ id }) => id).toSorted()).toEqual([1, 2, 3, "a", null]);
    expect(responses.find(({ id }) => id === null)?.error?.code).toBe(-32700);
    expect(responses.find(({ id }) => id === 2)?.error?.code).toBe(-32601);

    const binary = await scene.run(["connect"], {
      stdin: Buffer.concat([Buffer.from([0xff, 0xfe, 0x0a]), Buffer.from(`${stdin.split("\n")[0]}\n`)]),
    });
    expect(binary.code).toBe(0);
    expect(lines<Response>(binary.stdout).map(({ id, error }) => [id, error?.data.name])).toEqual([
      [null, "parse_error"],
      ["a", undefined],
    ]);

    const long = await scene.run(["connect"], {
      stdin: `"${"x".repeat(17 * 1024 * 1024)}"\n${stdin.split("\n")[0]}\n`,
    });
    expect(lines<Response>(long.stdout).map(({ id, error }) => [id, error?.data.name])).toEqual([
      [null, "too_large"],
      ["a", undefined],
    ]);

    const cut = await scene.run(["connect", "--json"], { stdin: '{"jsonrpc":"2.0","id"' });
    expect([cut.code, errorName(cut.stderr)]).toEqual([1, "input_cut_off"]);

    const broken = await scene.run(["connect", "--framing", "content-length", "--json"], { stdin: `${stdin}\r\n\r\n` });
    expect([broken.code, errorName(broken.stderr)]).toEqual([1, "framing_broken"]);
    expect(broken.stdout).toMatch(/^Content-Length: \d+\r\n\r\n\{"jsonrpc":"2.0","id":null,"error":\{"code":-32700/);
  });

  test("starts no daemon with --no-start, and reports when the daemon has ended", async () => {
    await using scene = await Scene.open();
    const none = await scene.run(["connect", "--no-start", "--json"]);
    expect(none.code).toBe(3);
    await scene.json(["start"]);
    const open = scene.start(["connect", "--json"], { keepOpen: true });
    open.write('{"jsonrpc":"2.0","id":1,"method":"daemon/info","params":{}}\n');
    await open.said(/"id":1/);
    await scene.json(["stop"]);
    const { code, stderr } = await open.ended;
    expect([code, errorName(stderr)]).toEqual([1, "connection_lost"]);
  });
});
