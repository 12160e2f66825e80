import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { COMPAT_PATH, COMPAT_SUBPROTOCOL } from "../../protocol/wire.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, hold } from "../../provider/reply.ts";
import { startStage } from "../helpers/stage.ts";
import type { Unchecked } from "../helpers/unchecked.ts";

interface Answer {
  readonly result?: Unchecked;
  readonly error?: { readonly code: number; readonly data: { readonly name: string } };
}

/** A client that speaks the other hosts' dialect. */
class CompatClient implements AsyncDisposable {
  readonly events: { readonly type: string }[] = [];
  readonly others: unknown[] = [];
  readonly #socket: WebSocket;
  readonly #answers = new Map<unknown, (answer: Answer) => void>();
  #waiting: { readonly type: string; readonly resolve: () => void }[] = [];
  #calls = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => {
      const message = JSON.parse(data.toString("utf8"));
      if (message.method === undefined) this.#answers.get(message.id)?.(message);
      else if (message.method === "event") this.#event(message.params);
      else this.others.push(message);
    });
  }

  static async open({ url, token }: DaemonFile, sessionId: string): Promise<CompatClient> {
    const socket = new WebSocket(`${url.replace("http", "ws")}${COMPAT_PATH}${sessionId}`, COMPAT_SUBPROTOCOL, {
      headers: { authorization: `Bearer ${token}` },
    });
    const client = new CompatClient(socket);
    await once(socket, "open");
    expect(socket.protocol).toBe(COMPAT_SUBPROTOCOL);
    return client;
  }

  call(method: string, params?: object): Promise<Answer> {
    this.#calls += 1;
    return this.raw({ jsonrpc: "2.0", id: this.#calls, method, params });
  }

  raw(message: Readonly<Record<string, unknown>> | readonly unknown[]): Promise<Answer> {
    const { promise, resolve } = Promise.withResolvers<Answer>();
    this.#answers.set("id" in message ? message["id"] : null, resolve);
    this.#socket.send(JSON.stringify(message));
    return promise;
  }

  /** Resolves with the next event of this type. */
  event(type: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ type, resolve });
    return promise;
  }

  #event(event: { readonly type: string }): void {
    this.events.push(event);
    for (const { type, resolve } of this.#waiting) if (type === event.type) resolve();
    this.#waiting = this.#waiting.filter(({ type }) => type !== event.type);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, "close");
  }
}

test("the other hosts' dialect prompts, streams, reports the state and the models, and cancels runs", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [answer("First."), answer("Sec", hold(gate), "ond.")] } });
  const session = await stage.session();
  const { file } = stage.daemon;
  await using client = await CompatClient.open(file, session.id);
  await using other = await CompatClient.open(file, session.id);
  // The other client receives the events of the first one's run once it is subscribed.
  expect((await other.call("get_state")).result).toMatchObject({ messages: [], model: { id: "model-1" } });

  expect((await client.call("prompt", { message: "one" })).result).toEqual({ output: "First.", success: true });
  expect(client.events.map(({ type }) => type)).toEqual(
    expect.arrayContaining(["agent_start", "message_update", "agent_settled"]),
  );
  const { messages } = (await client.call("get_state")).result;
  expect(messages.at(-1)).toMatchObject({ role: "assistant" });
  const { models } = (await client.call("list_models")).result;
  expect(models).toContainEqual(expect.objectContaining({ provider: "scripted", id: "model-2" }));

  const streaming = client.event("message_update");
  const prompting = client.call("prompt", { message: "two" });
  await streaming;
  for (const busy of [client, other]) {
    expect((await busy.call("prompt", { message: "three" })).error?.data.name).toBe("session_busy");
  }
  expect((await other.call("cancel")).result).toEqual({ cancelled: true });
  expect((await prompting).result).toEqual({ output: "Sec", success: false });
  expect((await client.call("cancel")).result).toEqual({ cancelled: false });
  await client.call("get_state");
  await other.call("get_state");
  expect(other.events).toEqual(client.events);
  expect([...client.others, ...other.others]).toEqual([]);

  expect((await client.call("session/close")).error?.code).toBe(-32601);
  expect((await client.call("prompt", { message: 7 })).error?.code).toBe(-32602);
  expect((await client.raw({ jsonrpc: "1.0", id: "x", method: "cancel" })).error?.code).toBe(-32600);
  expect((await client.raw([])).error?.code).toBe(-32600);

  await session.close();
  expect((await client.call("prompt", { message: "four" })).error?.data.name).toBe("session_not_found");
});

test("an unknown session is reported at the first call, and a path without a session id refuses the upgrade", async () => {
  await using stage = await startStage();
  const { file } = stage.daemon;
  await using client = await CompatClient.open(file, "no-such-session");
  expect((await client.call("get_state")).error?.data.name).toBe("session_not_found");
  for (const path of ["", "../v1/ws", "a/b", "-"]) {
    await expect(CompatClient.open(file, path)).rejects.toThrow(/404/);
  }
  await expect(CompatClient.open({ ...file, token: "wrong" }, "no-such-session")).rejects.toThrow(/401/);
});
