import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect } from "vitest";
import type { WebSocket } from "ws";
import { within } from "../../../server/lib/deadline.ts";
import { patience } from "../../helpers/patience.ts";
import { main } from "../../helpers/programs.ts";
import { wrongIn } from "./wrong.ts";

export type Json = Readonly<Record<string, unknown>>;
export type Update = Json & { readonly sessionUpdate: string };

export interface EditorOptions {
  /** An open connection to `/acp`. Default: the editor starts `pi-rpcd acp`. */
  readonly socket?: WebSocket;
  readonly stateDir: string;
  /** The directory of pi's configuration. */
  readonly agentDir: { readonly env: Readonly<Record<string, string>> };
  /** The model of new sessions; null: pi's. Default: a scripted one. */
  readonly model?: string | null;
  /** More options of the command. */
  readonly args?: readonly string[];
  /** The program and its first words. Default: `pi-rpcd acp`. */
  readonly program?: readonly string[];
  /** Answers the agent's requests. Default: none is answered. */
  readonly answer?: (method: string, params: Json, signal: AbortSignal) => Promise<Json> | Json | undefined;
}

/** A message that the agent sent, and how it is wrong. */
interface Wrong {
  readonly message: Json;
  readonly why: string;
}

/** An editor with a connection of its own to the agent. It checks each message of the agent by the protocol's schema. */
export class Editor implements AsyncDisposable {
  readonly #transport: Transport;
  readonly #options: EditorOptions;
  readonly #calls = new Map<number, { readonly method: string; readonly answer: PromiseWithResolvers<Json> }>();
  readonly #cancelled = new Map<unknown, AbortController>();
  readonly #watchers = new Set<() => void>();
  #count = 0;
  /** Messages of the agent. */
  readonly received: Json[] = [];
  readonly wrong: Wrong[] = [];
  readonly updates: { readonly sessionId: string; readonly update: Update }[] = [];
  /** Answers without a request. */
  readonly strays: Json[] = [];
  /** The agent's requests. */
  readonly asked: { readonly method: string; readonly params: Json }[] = [];
  /** The requests whose answers the agent does not want any more. */
  readonly withdrawn: unknown[] = [];

  constructor(options: EditorOptions) {
    this.#options = options;
    const receive = (text: string): void => this.#receive(JSON.parse(text) as Json);
    this.#transport =
      options.socket === undefined ? new Command(options, receive) : new Connection(options.socket, receive);
    void this.#transport.ended.then(() => {
      for (const { answer } of this.#calls.values()) answer.reject(new Error(`The agent has ended. ${this.stderr}`));
    });
  }

  get stderr(): string {
    return this.#transport.stderr;
  }

  /** Of the command. */
  get pid(): number {
    return this.#transport.pid as number;
  }

  /** Sends `initialize`. Resolves with the agent's answer. */
  async initialize(clientCapabilities: Json = {}): Promise<Json> {
    return await this.call("initialize", { protocolVersion: 1, clientCapabilities });
  }

  async call(method: string, params: Json): Promise<Json> {
    this.#count += 1;
    const answer = Promise.withResolvers<Json>();
    this.#calls.set(this.#count, { method, answer });
    this.write({ jsonrpc: "2.0", id: this.#count, method, params });
    return await answer.promise;
  }

  notify(method: string, params: Json): void {
    this.write({ jsonrpc: "2.0", method, params });
  }

  /** The id of the newest request. */
  get newest(): number {
    return this.#count;
  }

  write(message: unknown): void {
    this.#transport.write(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** A prompt of one text; resolves with its answer. */
  async prompt(sessionId: string, text: string): Promise<Json> {
    return await this.call("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  async create(cwd: string, more: Json = {}): Promise<string> {
    const { sessionId } = await this.call("session/new", { cwd, mcpServers: [], ...more });
    return String(sessionId);
  }

  get messages(): number {
    return this.received.length;
  }

  of(sessionId: string, kind?: string): readonly Update[] {
    return this.updates
      .filter((each) => each.sessionId === sessionId && (kind === undefined || each.update.sessionUpdate === kind))
      .map(({ update }) => update);
  }

  /** The text of an answer's chunks. */
  text(sessionId: string, kind = "agent_message_chunk"): string {
    return this.of(sessionId, kind)
      .map(({ content }) => String((content as Json)["text"]))
      .join("");
  }

  /** Resolves when the condition holds, looking after each message. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#watchers.add(resolve);
      const waited = await within(promise, patience.timeout);
      this.#watchers.delete(resolve);
      if (waited.kind === "timeout") throw new Error(`It does not come. ${this.stderr}`);
    }
  }

  /** Resolves when a tool of the session runs. */
  async untilToolRuns(sessionId: string): Promise<void> {
    await this.until(() => this.of(sessionId, "tool_call_update").some(({ status }) => status === "in_progress"));
  }

  /** Resolves with the agent's exit code, or with the close code. */
  get ended(): Promise<number | null> {
    return this.#transport.ended;
  }

  /** Ends stdin, or closes the connection. Resolves with the agent's exit code, or with the close code. */
  async end(): Promise<number | null> {
    this.#transport.end();
    return await this.#transport.ended;
  }

  /** Kills the agent's process, or the connection. Resolves as {@link end}. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<number | null> {
    this.#transport.kill(signal);
    return await this.#transport.ended;
  }

  /** Reads nothing more, for good. Resolves when the agent has ended. */
  async stopReading(): Promise<void> {
    this.#transport.stopReading();
    await this.#transport.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    expect(this.wrong).toEqual([]);
  }

  #receive(message: Json): void {
    this.received.push(message);
    const { id, method, params } = message;
    const call = method === undefined ? this.#calls.get(id as number) : undefined;
    const why = wrongIn(message, call?.method);
    if (why !== undefined) this.wrong.push({ message, why });
    if (call !== undefined) {
      this.#calls.delete(id as number);
      const { result, error } = message;
      if (error === undefined) call.answer.resolve(result as Json);
      else call.answer.reject(error);
    } else if (method === undefined) this.strays.push(message);
    else if (method === "session/update") this.updates.push(params as (typeof this.updates)[number]);
    else if (method === "$/cancel_request") this.#withdraw((params as Json)["requestId"]);
    else if (typeof method === "string" && id !== undefined) void this.#answer(id, method, params as Json);
    for (const watcher of this.#watchers) {
      this.#watchers.delete(watcher);
      watcher();
    }
  }

  #withdraw(requestId: unknown): void {
    this.withdrawn.push(requestId);
    this.#cancelled.get(requestId)?.abort();
    this.write({ jsonrpc: "2.0", id: requestId, error: { code: -32_800, message: "cancelled" } });
  }

  async #answer(id: unknown, method: string, params: Json): Promise<void> {
    this.asked.push({ method, params });
    const controller = new AbortController();
    this.#cancelled.set(id, controller);
    const result = await this.#options.answer?.(method, params, controller.signal);
    if (result !== undefined && !controller.signal.aborted) this.write({ jsonrpc: "2.0", id, result });
  }
}

interface Transport {
  readonly pid: number | undefined;
  readonly stderr: string;
  /** Resolves with the exit code or the close code. */
  readonly ended: Promise<number | null>;
  write(message: string): void;
  end(): void;
  kill(signal: NodeJS.Signals): void;
  /** Reads nothing more, for good. */
  stopReading(): void;
}

/** `pi-rpcd acp`: a line is a message. */
class Command implements Transport {
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcessWithoutNullStreams;
  stderr = "";

  constructor(
    { stateDir, agentDir, model = "scripted/model-1", args = [], program = [main, "acp"] }: EditorOptions,
    receive: (message: string) => void,
  ) {
    const flags = ["--state-dir", stateDir, ...(model === null ? [] : ["--model", model])];
    const words = ["--disable-warning=ExperimentalWarning", ...program, ...flags, ...args];
    this.#child = spawn(process.execPath, words, { env: { ...process.env, ...agentDir.env } });
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    createInterface({ input: this.#child.stdout }).on("line", receive);
    this.ended = once(this.#child, "exit").then(([code]) => code as number | null);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  write(message: string): void {
    this.#child.stdin.write(`${message}\n`);
  }

  end(): void {
    this.#child.stdin.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  stopReading(): void {
    this.#child.stdout.destroy();
  }
}

/** `/acp`: a text frame is a message. */
class Connection implements Transport {
  readonly pid = undefined;
  readonly stderr = "";
  readonly ended: Promise<number>;
  readonly #socket: WebSocket;

  constructor(socket: WebSocket, receive: (message: string) => void) {
    this.#socket = socket;
    this.ended = once(socket, "close").then(([code]) => code as number);
    socket.on("message", (data: Buffer) => receive(data.toString("utf8")));
  }

  write(message: string): void {
    this.#socket.send(message);
  }

  end(): void {
    this.#socket.close();
  }

  kill(): void {
    this.#socket.terminate();
  }

  stopReading(): void {
    this.#socket.pause();
  }
}
