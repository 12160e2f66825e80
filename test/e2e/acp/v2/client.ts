import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import {
  type AnyMessage,
  type ClientConnection,
  client as makeClient,
  methods,
  ndJsonStream,
  type PromptResponse,
  type Stream,
} from "@agentclientprotocol/sdk/experimental/v2";
import { expect } from "vitest";
import { within } from "../../../../server/lib/deadline.ts";
import { acpFindings } from "../../../helpers/acp-schema.ts";
import { patience } from "../../../helpers/patience.ts";
import { main } from "../../../helpers/programs.ts";
import type { Unchecked } from "../../../helpers/unchecked.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface ClientOptions {
  readonly stateDir: string;
  /** The directory of pi's configuration. */
  readonly agentDir: { readonly env: Readonly<Record<string, string>> };
  /** More options of the command. */
  readonly args?: readonly string[];
  readonly capabilities?: Json;
  /** Answers the agent's requests. Default: none is answered. */
  readonly answer?: (method: string, params: Unchecked, signal: AbortSignal) => Promise<Json> | Json;
}

/** The definitions of what an agent sends, by method. */
const answers: Readonly<Record<string, string>> = {
  initialize: "InitializeResponse",
  "auth/login": "LoginAuthResponse",
  "auth/logout": "LogoutAuthResponse",
  "session/new": "NewSessionResponse",
  "session/resume": "ResumeSessionResponse",
  "session/list": "ListSessionsResponse",
  "session/close": "CloseSessionResponse",
  "session/delete": "DeleteSessionResponse",
  "session/set_config_option": "SetSessionConfigOptionResponse",
  "session/prompt": "PromptResponse",
};
const asked: Readonly<Record<string, string>> = {
  "session/update": "UpdateSessionNotification",
  "session/request_permission": "RequestPermissionRequest",
  "elicitation/create": "CreateElicitationRequest",
  "$/cancel_request": "CancelRequestNotification",
};

/** The client of the protocol's SDK, with `pi-rpcd acp --v2` as its agent. Each message of the agent is checked. */
export class SdkClient implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #connection: ClientConnection;
  readonly #options: ClientOptions;
  readonly #sent = new Map<unknown, string>();
  readonly #watchers = new Set<() => void>();
  readonly #exit: Promise<number | null>;
  #stderr = "";
  readonly updates: { readonly sessionId: string; readonly update: Unchecked }[] = [];
  /** The agent's messages, in their order. */
  readonly received: Unchecked[] = [];
  /** The agent's requests. */
  readonly asked: { readonly method: string; readonly params: Unchecked }[] = [];
  /** How many of them the agent has withdrawn. */
  withdrawn = 0;
  readonly #wrong: unknown[] = [];

  constructor(options: ClientOptions) {
    this.#options = options;
    const { stateDir, agentDir, args = [] } = options;
    const words = [main, "acp", "--v2", "--state-dir", stateDir, "--model", "scripted/model-1", ...args];
    this.#child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...words], {
      env: { ...process.env, ...agentDir.env },
    });
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    this.#exit = once(this.#child, "exit").then(([code]) => code as number | null);
    const { stdin, stdout } = this.#child;
    const stream = ndJsonStream(Writable.toWeb(stdin), Readable.toWeb(stdout) as ReadableStream<Uint8Array>);
    const app = makeClient({ name: "test" })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.updates.push(params as (typeof this.updates)[number]);
        this.#look();
      })
      .onRequest(methods.client.session.requestPermission, ({ method, params, signal }) =>
        this.#answer(method, params, signal),
      )
      .onRequest(methods.client.elicitation.create, ({ method, params, signal }) =>
        this.#answer(method, params, signal),
      );
    this.#connection = app.connect(this.#checked(stream));
    this.#connection.closed.catch(() => {});
  }

  async initialize(capabilities: Json = this.#options.capabilities ?? {}): Promise<Unchecked> {
    const info = { name: "test", version: "1" };
    return await this.#connection.agent.request(methods.agent.initialize, { protocolVersion: 2, info, capabilities });
  }

  /** A request of any method. Rejects with the agent's error. */
  async call(method: string, params: Json, signal?: AbortSignal): Promise<Unchecked> {
    const options = signal === undefined ? {} : { cancellationSignal: signal };
    return await this.#connection.agent.request(method as never, params as never, options);
  }

  /** Sends a message of any shape. */
  write(message: unknown): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  cancel(sessionId: string): void {
    void this.#connection.agent.notify(methods.agent.session.cancel, { sessionId });
  }

  async create(cwd: string, more: Json = {}): Promise<string> {
    const { sessionId } = await this.call(methods.agent.session.new, { cwd, ...more });
    return sessionId;
  }

  /** A prompt of one text. Resolves when it is in the conversation. */
  async prompt(sessionId: string, text: string, signal?: AbortSignal): Promise<PromptResponse> {
    return await this.call(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }, signal);
  }

  /** The same. Resolves with the end of the work. */
  async run(sessionId: string, text: string): Promise<Unchecked> {
    const before = this.states(sessionId).length;
    await this.prompt(sessionId, text);
    return await this.idle(sessionId, before);
  }

  /** Resolves with the next idle state after these states. */
  async idle(sessionId: string, before = 0): Promise<Unchecked> {
    const find = (): Unchecked =>
      this.states(sessionId)
        .slice(before)
        .find(({ state }) => state === "idle");
    await this.until(() => find() !== undefined);
    return find();
  }

  of(sessionId: string, ...kinds: readonly string[]): readonly Unchecked[] {
    const updates = this.updates.filter((each) => each.sessionId === sessionId).map(({ update }) => update);
    return kinds.length === 0 ? updates : updates.filter(({ sessionUpdate }) => kinds.includes(sessionUpdate));
  }

  states(sessionId: string): readonly Unchecked[] {
    return this.of(sessionId, "state_update");
  }

  /** What the client has of a session. */
  view(sessionId: string): View {
    return new View(this.of(sessionId));
  }

  /** The model's text. */
  text(sessionId: string): string {
    return this.view(sessionId).text("agent_message");
  }

  /** Resolves when the condition holds, looking after each message. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#watchers.add(resolve);
      const waited = await within(promise, patience.timeout);
      this.#watchers.delete(resolve);
      if (waited.kind === "timeout") throw new Error(`It does not come. ${this.#stderr}`);
    }
  }

  async untilToolRuns(sessionId: string): Promise<void> {
    await this.until(() => this.of(sessionId, "tool_call_update").some(({ status }) => status === "in_progress"));
  }

  /** Ends stdin. Resolves with the agent's exit code. */
  async end(): Promise<number | null> {
    this.#child.stdin.end();
    return await this.#exit;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    expect(this.#wrong).toEqual([]);
  }

  #checked({ readable, writable }: Stream): Stream {
    const received = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        this.#check(message as Unchecked);
        controller.enqueue(message);
        this.#look();
      },
    });
    const sent = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        const { id, method } = message as Unchecked;
        if (method !== undefined && id !== undefined) this.#sent.set(id, method);
        controller.enqueue(message);
      },
    });
    void sent.readable.pipeTo(writable).catch(() => {});
    return { readable: readable.pipeThrough(received), writable: sent.writable };
  }

  #check(message: Unchecked): void {
    this.received.push(message);
    const { id, method, params, result, error } = message;
    if (method === "$/cancel_request") this.withdrawn += 1;
    const definition =
      method !== undefined
        ? (asked[method] ?? "none")
        : error !== undefined
          ? "Error"
          : answers[this.#sent.get(id) ?? ""];
    if (definition === undefined) return;
    const findings = acpFindings(definition, params ?? error ?? result, "v2");
    if (findings.length > 0) this.#wrong.push({ message, findings });
  }

  async #answer(method: string, params: Unchecked, signal: AbortSignal): Promise<never> {
    this.asked.push({ method, params });
    this.#look();
    const { answer } = this.#options;
    if (answer !== undefined) return (await answer(method, params, signal)) as never;
    await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    throw signal.reason;
  }

  #look(): void {
    for (const watcher of this.#watchers) {
      this.#watchers.delete(watcher);
      watcher();
    }
  }
}

interface Message {
  readonly kind: string;
  readonly id: string;
  blocks: Unchecked[];
  meta: Unchecked;
}

/** What a client has after these updates, by the rules of the protocol: each entity in its place, and its newest state. */
export class View {
  readonly messages = new Map<string, Message>();
  readonly tools = new Map<string, Unchecked>();
  readonly terminals = new Map<string, { command?: string; cwd?: string; output: string; exitStatus?: unknown }>();
  readonly compactions = new Map<string, Unchecked>();
  /** Keys of messages, tools and compactions in their places. */
  readonly timeline: string[] = [];
  title: string | null | undefined;
  state: string | undefined;

  constructor(updates: readonly Unchecked[]) {
    for (const update of updates) this.#take(structuredClone(update));
  }

  /** The text of all messages of a kind. */
  text(kind: string): string {
    const blocks = [...this.messages.values()]
      .filter((message) => message.kind === kind)
      .flatMap(({ blocks: all }) => all);
    return blocks.map(({ type, text }) => text ?? `[${type}]`).join("");
  }

  /** The timeline without ids: texts, and what is comparable of tools. */
  get comparable(): readonly unknown[] {
    return this.timeline.map((key) => {
      const message = this.messages.get(key);
      if (message !== undefined) {
        const text = message.blocks.map((block) => block.text ?? `[${block.type}]`).join("");
        // Of an extension's message only the entry has the time.
        return { kind: message.kind, text, ...(message.id.startsWith("custom-") ? {} : { id: message.id }) };
      }
      const tool = this.tools.get(key);
      if (tool === undefined) return { compaction: this.compactions.get(key)?.summary };
      const { _meta, content, ...fields } = tool;
      const shown = tool.name === "write" ? undefined : content;
      return { ...fields, content: shown, exitCode: _meta?.["pi-rpcd"]?.exitCode };
    });
  }

  #take(update: Unchecked): void {
    const { sessionUpdate: kind, messageId, toolCallId, terminalId, compactionId, content } = update;
    if (/^(?:user|agent)_(?:message|thought)$/.test(kind)) {
      const message = this.#message(kind, messageId);
      if (content !== undefined) message.blocks = content ?? [];
      message.meta = { ...message.meta, ...update._meta };
    } else if (/_(?:message|thought)_chunk$/.test(kind)) {
      this.#message(kind.replace("_chunk", ""), messageId).blocks.push(content);
    } else if (kind === "tool_call_update") {
      const { sessionUpdate: _kind, ...fields } = update;
      if (!this.tools.has(toolCallId)) this.timeline.push(toolCallId);
      this.tools.set(toolCallId, { content: [], locations: [], ...this.tools.get(toolCallId), ...fields });
    } else if (kind === "terminal_update") {
      const { sessionUpdate: _kind, terminalId: _id, ...fields } = update;
      this.terminals.set(terminalId, { output: "", ...this.terminals.get(terminalId), ...fields });
    } else if (kind === "terminal_output_chunk") {
      const terminal = this.terminals.get(terminalId);
      if (terminal === undefined) throw new Error(`The output of ${terminalId} came before the terminal.`);
      terminal.output += Buffer.from(update.data, "base64").toString();
    } else if (kind === "compaction_update") {
      if (!this.compactions.has(compactionId)) this.timeline.push(compactionId);
      this.compactions.set(compactionId, { ...this.compactions.get(compactionId), ...update });
    } else if (kind === "session_info_update") this.title = update.title;
    else if (kind === "state_update") this.state = update.state;
  }

  #message(kind: string, id: string): Message {
    const key = `${kind} ${id}`;
    const known = this.messages.get(key);
    if (known !== undefined) return known;
    const message: Message = { kind, id, blocks: [], meta: undefined };
    this.messages.set(key, message);
    this.timeline.push(key);
    return message;
  }
}
