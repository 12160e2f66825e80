import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../../protocol/daemon-file.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hang, hold, status } from "../../../provider/reply.ts";
import { fencesOf, read } from "../../contract/docs/documents.ts";
import { startStage } from "../../helpers/stage.ts";

type Value = null | boolean | number | string | readonly Value[] | Fields;
interface Fields {
  readonly [name: string]: Value;
}
interface Frame extends Fields {
  readonly params: Fields;
}

/**
 * Values that differ between runs. Each of the document's ids stands for one value, in answers and in later requests.
 */
const ids = new Set(["sessionId", "epoch", "promptId", "promptIds", "runId", "requestId", "dialogId", "fingerprint"]);
const numbers = new Set(["seq", "cursor", "after", "from", "to"]);
const others = new Set([
  ...["at", "deadline", "timestamp", "pid", "file", "model"],
  ...["messageCount", "composition", "payloadBytes", "payloadSha256", "latencyMs", "headers"],
]);
/** The session of the document's frames. */
const documentedSession = "01a205b7-2cfe-7455-98b7-e48a6b6d9bad";

/** The frames of a section of PROTOCOL.md, in order, exchanged with a daemon over a WebSocket. */
class Exchange implements AsyncDisposable {
  readonly #blocks: { readonly kind: string; readonly frames: readonly Frame[] }[];
  readonly #known: Map<Value, Value>;
  readonly #received: Frame[] = [];
  readonly #waiting = new Set<() => void>();
  #socket: WebSocket | undefined;
  #calls = 0;

  constructor(section: string, known: Readonly<Record<string, string>>) {
    this.#known = new Map(Object.entries(known));
    this.#blocks = fencesOf(section)
      .filter(({ info }) => info[0] === "json")
      .map(({ info: [, kind = ""], text }) => ({
        kind,
        frames: text.split(/\n\n+/).map((frame) => JSON.parse(frame) as Frame),
      }));
  }

  /** Opens a WebSocket as the document says; an earlier one is disconnected. */
  async connect({ url, token }: DaemonFile): Promise<void> {
    this.#socket?.terminate();
    this.#received.length = 0;
    this.#socket = new WebSocket(`${url.replace("http", "ws")}/v1/ws`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    this.#socket.on("message", (data) => {
      this.#received.push(JSON.parse(String(data)) as Frame);
      for (const look of this.#waiting) look();
    });
    await once(this.#socket, "open");
  }

  /** Sends the requests of the next block. */
  send(): void {
    for (const frame of this.#next("request")) this.#socket?.send(JSON.stringify(this.#ours(frame)));
  }

  /** Waits for the answers of the next block, and compares them with the document. */
  async answered(kind: "response" | "error" = "response"): Promise<void> {
    for (const frame of this.#next(kind)) this.#compare(frame, await this.#find((one) => one["id"] === frame["id"]));
  }

  /** Waits for the notifications of the next block, and compares them with the document. */
  async notified(): Promise<void> {
    for (const frame of this.#next("notification")) {
      const wanted = kindOf(this.#ours(frame) as Frame);
      this.#compare(frame, await this.#find((one) => one["id"] === undefined && kindOf(one) === wanted));
    }
  }

  /** Makes a call that is not in the document, and returns its result. */
  async ask(method: string, params: Fields): Promise<Fields> {
    const id = `call-${this.#calls++}`;
    this.#socket?.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    const { result, error } = await this.#find((one) => one["id"] === id);
    expect(error).toBeUndefined();
    return result as Fields;
  }

  /** Drops the frames that came until now. */
  forget(): void {
    this.#received.length = 0;
  }

  /** Waits for an event of pi, which may have come before. */
  async event(type: string, role?: string): Promise<void> {
    await this.#find(({ params }) => {
      const { event } = (params ?? {}) as Readonly<Record<string, Fields | undefined>>;
      return event?.["type"] === type && (role === undefined || (event["message"] as Fields)["role"] === role);
    });
  }

  /** The kinds of the blocks that were not exchanged. */
  get rest(): readonly string[] {
    return this.#blocks.map(({ kind }) => kind);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#socket === undefined || this.#socket.readyState === WebSocket.CLOSED) return;
    this.#socket.terminate();
    await once(this.#socket, "close");
  }

  #next(kind: string): readonly Frame[] {
    const block = this.#blocks.shift();
    expect(block?.kind, "the kind of the next block").toBe(kind);
    return block?.frames ?? [];
  }

  /** The first received frame that fits. It is not found again. */
  async #find(fits: (frame: Frame) => boolean): Promise<Frame> {
    const { promise, resolve } = Promise.withResolvers<Frame>();
    const look = (): void => {
      const index = this.#received.findIndex(fits);
      if (index === -1) return;
      const [frame] = this.#received.splice(index, 1);
      if (frame !== undefined) resolve(frame);
    };
    this.#waiting.add(look);
    look();
    return await promise.finally(() => this.#waiting.delete(look));
  }

  #compare(documented: Frame, received: Frame): void {
    expect(received).toEqual(this.#learn(documented, received));
  }

  /** The documented value, with the values of this run. */
  #learn(documented: Value, received: Value | undefined, name = ""): Value {
    const isTime = name.endsWith("At") || others.has(name);
    if (isTime && typeof documented === typeof received) return received ?? null;
    if (Array.isArray(documented)) {
      const items = Array.isArray(received) ? received : [];
      return documented.map((item, index) => this.#learn(item, items[index], name));
    }
    if (isFields(documented)) {
      const fields = isFields(received) ? received : {};
      const own = Object.entries(documented).map(
        ([key, value]) => [key, this.#learn(value, fields[key], key)] as const,
      );
      // The document shows only a part of pi's own events.
      const isOfPi = name === "event" || name === "message";
      return { ...(isOfPi && fields), ...Object.fromEntries(own) };
    }
    if (numbers.has(name) || (ids.has(name) && !this.#known.has(documented))) {
      if (typeof received === typeof documented && received !== undefined) this.#known.set(documented, received);
    }
    return this.#known.get(documented) ?? documented;
  }

  /** The documented value with the ids and numbers of this run. */
  #ours(documented: Value, name = ""): Value {
    if (Array.isArray(documented)) return documented.map((item) => this.#ours(item, name));
    if (isFields(documented))
      return Object.fromEntries(Object.entries(documented).map(([key, value]) => [key, this.#ours(value, key)]));
    return typeof documented === "number" && !numbers.has(name)
      ? documented
      : (this.#known.get(documented) ?? documented);
  }
}

function isFields(value: Value | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The fields that identify a documented notification among the received ones. */
function kindOf({ method, params }: Frame): string {
  const { event, delivery, prompt } = params as Readonly<Record<string, Fields | undefined>>;
  const message = event?.["message"] as Fields | undefined;
  const ofDelivery = [delivery?.["deliveryId"], delivery?.["state"]];
  return JSON.stringify([method, event?.["type"], message?.["role"], ...ofDelivery, prompt?.["state"]]);
}

function section(heading: string): string {
  const document = read("PROTOCOL.md");
  const from = document.indexOf(`\n## ${heading}\n`);
  expect(from, heading).not.toBe(-1);
  const to = document.indexOf("\n## ", from + 1);
  return document.slice(from, to === -1 ? undefined : to);
}

function daemonFile(stateDir: string): DaemonFile {
  return JSON.parse(readFileSync(join(stateDir, "daemon.json"), "utf8")) as DaemonFile;
}

const hello = { client: { id: "editor-of-ada", name: "Ada's editor" } };

test("the frames of the minimal client in PROTOCOL.md are those of a real daemon", async () => {
  const gate = new Gate();
  await using stage = await startStage({
    provider: { script: [answer("It is 4."), answer("Good.", hold(gate))] },
  });
  await using exchange = new Exchange(section("A minimal client"), { "/home/ada/project": stage.cwd });
  await exchange.connect(daemonFile(stage.stateDir));
  for (const _step of ["hello", "create", "subscribe", "prompt"]) {
    exchange.send();
    await exchange.answered();
  }
  await exchange.notified();
  exchange.send();
  await exchange.answered();
  gate.open();
  expect(exchange.rest).toEqual([]);
});

test("the frames of a dialog in PROTOCOL.md are those of a real daemon", async () => {
  const asking = join(import.meta.dirname, "..", "..", "fixtures", "extension", "asking.ts");
  await using stage = await startStage({ agent: { settings: { extensions: [asking] } } });
  const { id: sessionId } = await stage.session();
  await using exchange = new Exchange(section("Dialogs"), { [documentedSession]: sessionId });
  await exchange.connect(daemonFile(stage.stateDir));
  await exchange.ask("daemon/hello", hello);
  await exchange.ask("session/subscribe", { sessionId, dialogs: true });
  const question = { method: "confirm", title: "Run it?", text: "rm -rf build" };
  const asked = exchange.ask("session/prompt", { sessionId, text: `/ask ${JSON.stringify([question])}` });
  await exchange.notified();
  exchange.send();
  await exchange.notified();
  await asked;
  expect(exchange.rest).toEqual([]);
});

test("the frames of the scenarios in PROTOCOL.md are those of a real daemon", async () => {
  const script = [
    answer("I run them.", call("bash", { command: "sleep 600" })),
    answer("All is green."),
    answer("I look at the last commit.", hang()),
  ];
  await using stage = await startStage({ provider: { script } });
  const { id: sessionId } = await stage.session();
  await using exchange = new Exchange(section("Scenarios"), {
    [documentedSession]: sessionId,
    "/home/ada/project": stage.cwd,
  });
  const daemon = daemonFile(stage.stateDir);
  await exchange.connect(daemon);
  await exchange.ask("daemon/hello", hello);
  await exchange.ask("session/subscribe", { sessionId, deltas: false });

  // A push while a tool runs.
  await exchange.ask("session/prompt", { sessionId, text: "Run the tests." });
  await exchange.event("tool_execution_start");
  exchange.send();
  await exchange.answered();
  await exchange.ask("session/abort", { sessionId });
  await exchange.notified();
  await exchange.ask("session/prompt", { sessionId, text: "Go on.", wait: "settled" });
  exchange.forget();

  // A busy session.
  await exchange.ask("session/prompt", { sessionId, text: "What was changed?" });
  await exchange.event("message_start", "assistant");
  exchange.send();
  await exchange.answered("error");
  exchange.send();
  await exchange.answered();
  exchange.send();
  await exchange.notified();
  await exchange.answered();

  // pi is killed while it has a queued prompt.
  const { pid } = await exchange.ask("session/get", { sessionId });
  process.kill(Number(pid), "SIGKILL");
  await exchange.notified();

  // Connecting again, to the same log and to another one.
  await exchange.connect(daemon);
  await exchange.ask("daemon/hello", hello);
  exchange.send();
  await exchange.answered();
  exchange.send();
  await exchange.answered();
  await exchange.notified();
  expect(exchange.rest).toEqual([]);
});

test("the frames of docs/provider-requests.md are those of a real daemon", async () => {
  await using stage = await startStage({ provider: { script: [status(529), answer("Here it is.")] } });
  const { id: sessionId } = await stage.session();
  await using exchange = new Exchange(read("docs/provider-requests.md"), { [documentedSession]: sessionId });
  await exchange.connect(daemonFile(stage.stateDir));
  await exchange.ask("session/subscribe", { sessionId, deltas: false, provider: "summary" });
  await exchange.ask("session/prompt", { sessionId, text: "Hello" });
  await exchange.notified();
  expect(exchange.rest).toEqual([]);
});
