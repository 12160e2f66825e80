import { expect, test } from "vitest";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../../protocol/daemon-file.ts";
import { WEBSOCKET_PATH } from "../../../protocol/wire.ts";
import { answer, call } from "../../../provider/reply.ts";
import { startStage } from "../../helpers/stage.ts";
import { isEvent, teedPi } from "../../helpers/teed-pi.ts";

interface Received {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly event?: { readonly type: string } };
}

/** A connection whose received events, and answers by the names of their calls, are listed in order. */
class OrderedClient {
  readonly received: string[] = [];
  readonly #socket: WebSocket;
  readonly #names = new Map<number, string>();
  readonly #answers = new Map<number, PromiseWithResolvers<Received>>();
  readonly #events: { readonly type: string; readonly seen: () => void }[] = [];
  #id = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => this.#receive(data.toString("utf8")));
  }

  static async open(file: DaemonFile): Promise<OrderedClient> {
    const socket = new WebSocket(`${file.url.replace("http", "ws")}${WEBSOCKET_PATH}`, {
      headers: { authorization: `Bearer ${file.token}` },
    });
    const client = new OrderedClient(socket);
    await new Promise((resolve, reject) => void socket.once("open", resolve).once("error", reject));
    return client;
  }

  /** `name`: how the answer is listed. Without one it is not. */
  call(method: string, params: object, name?: string): Promise<Received> {
    this.#id += 1;
    const answered = Promise.withResolvers<Received>();
    this.#answers.set(this.#id, answered);
    if (name !== undefined) this.#names.set(this.#id, name);
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id: this.#id, method, params }));
    return answered.promise;
  }

  /** Resolves at the next event of this type. */
  event(type: string): Promise<void> {
    return new Promise((seen) => void this.#events.push({ type, seen }));
  }

  close(): void {
    this.#socket.terminate();
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as Received;
    if (message.id !== undefined) {
      const name = this.#names.get(message.id);
      if (name !== undefined) this.received.push(`answer to ${name}`);
      this.#answers.get(message.id)?.resolve(message);
      return;
    }
    const event = message.params?.event;
    if (message.method !== "session/event" || event === undefined) return;
    const key = '"event":';
    this.received.push(text.slice(text.indexOf(key) + key.length, -2));
    for (const awaited of this.#events.splice(0)) {
      if (awaited.type === event.type) awaited.seen();
      else this.#events.push(awaited);
    }
  }
}

/** pi's records for a client: events, and the responses to its own commands by their names. */
function listed(records: readonly string[], commands: ReadonlySet<string>): string[] {
  return records.flatMap((record) => {
    if (isEvent(record)) return [record];
    const { type, command, id } = JSON.parse(record) as { type: string; command?: string; id?: string };
    if (type !== "response" || command === undefined || !commands.has(command)) return [];
    // The helper's commands are prompts too.
    if (command === "prompt" && id?.startsWith("p:") !== true) return [];
    return [`answer to ${command}`];
  });
}

test("answers have the places among the events that pi gave them, with inOrder", async () => {
  const { pi, records } = teedPi();
  const script = [
    answer("I look.", call("bash", { command: "echo looked" })),
    answer(..."one two three four five six seven eight".split(" ")),
    answer("again"),
  ];
  await using stage = await startStage({ pi, provider: { script } });
  const { id: sessionId } = await stage.session();
  const client = await OrderedClient.open(stage.daemon.file);
  const { cursor } = (await client.call("session/subscribe", { sessionId, inOrder: true })) as { cursor?: number };
  expect(cursor).toBeUndefined();
  const named = new Set(["prompt", "set_thinking_level", "bash", "set_session_name", "abort"]);
  const before = records().length;
  const command = (type: string, fields: object = {}) =>
    client.call("session/command", { sessionId, command: { type, ...fields } }, type);

  let settled = client.event("agent_settled");
  let started = client.event("tool_execution_end");
  await client.call("session/prompt", { sessionId, text: "Look.", idempotencyKey: "in-order-1" }, "prompt");
  await started;
  await Promise.all([
    command("set_thinking_level", { level: "off" }),
    command("set_session_name", { name: "in order" }),
    client.call("session/bash", { sessionId, command: "printf one; printf two" }, "bash"),
  ]);
  await settled;
  settled = client.event("agent_settled");
  started = client.event("agent_start");
  const prompted = client.call("session/prompt", { sessionId, text: "Once more." }, "prompt");
  await started;
  await Promise.all([prompted, client.call("session/abort", { sessionId }, "abort"), settled]);
  client.close();

  const expected = listed(records().slice(before), named);
  expect(expected.filter((each) => each.startsWith("answer"))).toHaveLength(6);
  expect(client.received).toEqual(expected);
});
