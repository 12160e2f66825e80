import { connect as connectSocket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { Gap } from "../../protocol/event.ts";
import { WEBSOCKET_PATH } from "../../protocol/wire.ts";
import { within } from "../../server/lib/deadline.ts";
import type { SessionRecord } from "./session-record.ts";

export interface LogRecorderOptions {
  readonly name: string;
  readonly record: SessionRecord;
  /** The daemon that listens, or will. Rejects if there is none. */
  readonly listening: () => Promise<DaemonFile>;
  /** Which gaps it may get. Default: none. */
  readonly allows?: (gap: Gap) => boolean;
  /** Stops reading for this long after this many messages. Default: reads as fast as it can. */
  readonly pauses?: { readonly everyMessages: number; readonly ms: number };
  /** Whether it tells the daemon that it can answer dialogs. Default: false. */
  readonly dialogs?: boolean;
}

interface Message {
  readonly id?: number;
  readonly error?: unknown;
  readonly result?: { readonly cursor: number; readonly epoch: string };
  readonly method?: string;
  readonly params?: { readonly seq: number; readonly firstSeq?: number } & Gap;
}

/** Without a message, also on a loaded machine. */
const hangsAfterMs = 240_000;

/**
 * A client without our client library that follows a session's log over all daemons: from its beginning, and after each
 * lost connection from the last number that it has handled.
 */
export class LogRecorder implements AsyncDisposable {
  readonly name: string;
  readonly #options: LogRecorderOptions;
  readonly #record: SessionRecord;
  #cursor = 0;
  #epoch: string | undefined;
  #socket: WebSocket | undefined;
  #isPresent = true;
  /** Settles when it leaves. */
  #leaves = Promise.withResolvers<void>();
  #isOver = false;
  #following: Promise<void>;
  readonly #watchers = new Set<() => void>();

  constructor(options: LogRecorderOptions) {
    this.#options = options;
    this.name = options.name;
    this.#record = options.record;
    this.#following = this.#follow();
  }

  /** The last number that it has. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Resolves when it has this number. Rejects when it is disposed first. */
  async reached(seq: number): Promise<void> {
    while (this.#cursor < seq) {
      if (this.#isOver) throw new Error(`${this.name} ended at ${this.#cursor}, before ${seq}.`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#watchers.add(resolve);
      const waited = await within(promise, hangsAfterMs);
      if (waited.kind === "timeout") throw new Error(`${this.name} hangs at ${this.#cursor}, before ${seq}.`);
    }
  }

  /** Breaks the connection, and stays away. */
  async leave(): Promise<void> {
    this.#isPresent = false;
    this.#leaves.resolve();
    this.#socket?.terminate();
    await this.#following;
  }

  /** Connects again, with the last number that it has. */
  join(): void {
    if (this.#isPresent || this.#isOver) return;
    this.#isPresent = true;
    this.#leaves = Promise.withResolvers();
    this.#following = this.#follow();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#changed();
    await this.leave();
  }

  async #follow(): Promise<void> {
    while (this.#isPresent) {
      // Waits for the next daemon, unless it leaves first.
      const listening = this.#options.listening().catch(() => undefined);
      const daemon = await Promise.race([listening, this.#leaves.promise.then(() => undefined)]);
      if (!this.#isPresent) return;
      const wasConnected = daemon !== undefined && (await this.#connection(daemon));
      // A refused connection is tried again, without a busy loop.
      if (!wasConnected) await sleep(5);
    }
  }

  /** Resolves when the connection has ended, with whether there was one. */
  async #connection(daemon: DaemonFile): Promise<boolean> {
    const wire = connectSocket({ path: daemon.socketPath });
    const socket = new WebSocket(`ws://localhost${WEBSOCKET_PATH}`, {
      perMessageDeflate: false,
      maxPayload: 128 * 1024 * 1024,
      headers: { authorization: `Bearer ${daemon.token}` },
      createConnection: () => wire,
    });
    this.#socket = socket;
    const closed = Promise.withResolvers<void>();
    let wasOpen = false;
    let messages = 0;
    socket.on("error", () => {});
    socket.on("close", () => closed.resolve());
    socket.on("open", () => {
      wasOpen = true;
      const epoch = this.#epoch === undefined ? {} : { epoch: this.#epoch };
      const dialogs = this.#options.dialogs === true ? { dialogs: true } : {};
      const params = { sessionId: this.#record.sessionId, after: this.#cursor, ...epoch, ...dialogs };
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/subscribe", params }));
      if (!this.#isPresent) socket.terminate();
    });
    socket.on("message", (data: Buffer) => {
      // Nothing counts as read after it has left.
      if (!this.#isPresent) return;
      this.#take(data.toString("utf8"));
      messages += 1;
      const { pauses } = this.#options;
      if (pauses === undefined || messages % pauses.everyMessages !== 0) return;
      socket.pause();
      setTimeout(() => socket.resume(), pauses.ms);
    });
    await closed.promise;
    return wasOpen;
  }

  #take(text: string): void {
    const message = JSON.parse(text) as Message;
    const { result, error, method, params } = message;
    if (result !== undefined) {
      this.#epoch = result.epoch;
      this.#record.subscribed(this.name, result.epoch);
      return;
    }
    if (error !== undefined || method === undefined || params === undefined) {
      this.#record.say("order", `${this.name} got ${text.slice(0, 300)}`);
      return;
    }
    if (method.startsWith("daemon/")) return;
    if (method === "session/gap") {
      const { from, to, reason, onlyDeltas } = params;
      const gap: Gap = { from, to, reason, ...(onlyDeltas === undefined ? {} : { onlyDeltas }) };
      this.#record.gap(this.name, gap, this.#options.allows?.(gap) === true);
      this.#advance(from, to);
      return;
    }
    const { seq, firstSeq = seq } = params;
    this.#advance(firstSeq, seq);
    if (firstSeq === seq) this.#record.told(this.name, seq, text);
    else this.#record.merged(firstSeq, seq);
  }

  #advance(from: number, to: number): void {
    if (from !== this.#cursor + 1) this.#record.say("order", `${this.name} got ${from} after ${this.#cursor}`);
    this.#cursor = to;
    this.#changed();
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
    this.#watchers.clear();
  }
}
