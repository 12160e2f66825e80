import { hash } from "node:crypto";
import { once } from "node:events";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { WEBSOCKET_PATH } from "../../protocol/wire.ts";

/** The meaning of a number in a session's log: a notification, or a range reported as a gap. */
interface Numbered {
  readonly method: string;
  readonly params: {
    readonly sessionId: string;
    readonly seq: number;
    readonly firstSeq?: number;
    readonly from?: number;
    readonly to?: number;
    readonly reason?: string;
    readonly event?: Readonly<Record<string, unknown>>;
    readonly [name: string]: unknown;
  };
}

/**
 * Follows one session over changing connections and accounts for every number of its log: each is
 * received once, in order, or covered by a gap, and means the same for every reader.
 */
export class EventVerifier implements AsyncDisposable {
  /** Everything received except deltas, in order. */
  readonly told: Numbered[] = [];
  /** Faults of the numbers. */
  readonly violations: string[] = [];
  readonly gaps: { readonly from: number; readonly to: number; readonly reason: string }[] = [];
  readonly sessionId: string;
  readonly #contents = new Map<number, string>();
  readonly #waiting = new Set<{ fits: (told: Numbered) => boolean; resolve: (told: Numbered) => void }>();
  #socket: WebSocket | undefined;
  #last: number | undefined;

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  /** The newest number received, as a cursor. */
  get cursor(): number | undefined {
    return this.#last;
  }

  /** Continues from its cursor; at first from the beginning. Resolves when missed events have arrived. */
  async follow(daemon: DaemonFile): Promise<void> {
    await this.leave();
    const socket = new WebSocket(`${daemon.url.replace("http", "ws")}${WEBSOCKET_PATH}`, {
      headers: { authorization: `Bearer ${daemon.token}` },
      maxPayload: 256 * 1024 * 1024,
    });
    this.#socket = socket;
    const answered = Promise.withResolvers<{ result?: { gap?: Numbered["params"] }; error?: unknown }>();
    socket.on("message", (data: Buffer) => {
      const message = JSON.parse(data.toString("utf8"));
      if (message.method === undefined) {
        this.#noteGap(message.result?.gap);
        answered.resolve(message);
      } else this.#take(message as Numbered, data);
    });
    socket.on("close", () => answered.resolve({ error: "closed" }));
    socket.on("error", () => {});
    await once(socket, "open");
    const params = { sessionId: this.sessionId, after: this.#last ?? 0 };
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/subscribe", params }));
    const { error } = await answered.promise;
    if (error !== undefined) throw new Error(`The subscription failed: ${JSON.stringify(error)}`);
  }

  /** Ends its connection. */
  async leave(): Promise<void> {
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket === undefined || socket.readyState === WebSocket.CLOSED) return;
    socket.terminate();
    await once(socket, "close");
  }

  /** The first that fits, past or future. */
  until(fits: (told: Numbered) => boolean): Promise<Numbered> {
    const found = this.told.find(fits);
    if (found !== undefined) return Promise.resolve(found);
    const { promise, resolve } = Promise.withResolvers<Numbered>();
    this.#waiting.add({ fits, resolve });
    return promise;
  }

  /** The first event of pi or the daemon of this type that fits. */
  async event(type: string, fits: (event: Readonly<Record<string, unknown>>) => boolean = () => true) {
    const told = await this.until(
      ({ params: { event } }) => event !== undefined && event["type"] === type && fits(event),
    );
    return told.params.event as Readonly<Record<string, unknown>>;
  }

  /** The first `session/updated` with this state, among those after `after`. */
  async state(kind: string, after = 0): Promise<Readonly<Record<string, unknown>>> {
    const told = await this.until(
      ({ method, params }) =>
        method === "session/updated" &&
        params.seq > after &&
        (params["session"] as { state?: unknown } | undefined)?.state === kind,
    );
    return told.params["session"] as Readonly<Record<string, unknown>>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  #take(told: Numbered, data: Buffer): void {
    const { method, params } = told;
    if (params.sessionId !== this.sessionId) this.violations.push(`got ${method} of another session`);
    if (method === "session/gap") this.#noteGap(params);
    else if (typeof params.seq === "number") this.#note(params.firstSeq ?? params.seq, params.seq, data);
    if (told.params.event?.["type"] !== "message_update") this.told.push(told);
    for (const waiting of [...this.#waiting]) {
      if (!waiting.fits(told)) continue;
      this.#waiting.delete(waiting);
      waiting.resolve(told);
    }
  }

  #note(first: number, last: number, data: Buffer): void {
    if (this.#last !== undefined && first !== this.#last + 1) {
      this.violations.push(`got ${first}..${last} after ${this.#last}`);
    }
    this.#last = last;
    if (first !== last) return;
    const content = hash("sha1", data, "base64");
    const before = this.#contents.get(last);
    if (before !== undefined && before !== content) this.violations.push(`${last} stood for two things`);
    this.#contents.set(last, content);
  }

  #noteGap(gap: { readonly from?: number; readonly to?: number; readonly reason?: string } | undefined): void {
    if (gap?.from === undefined || gap.to === undefined) return;
    const { from, to, reason = "" } = gap;
    this.gaps.push({ from, to, reason });
    // The beginning of the log is not a hole for a first-time reader.
    if (this.#last !== undefined && this.told.length > 0 && from > this.#last + 1) {
      this.violations.push(`the gap ${from}..${to} comes after ${this.#last}`);
    }
    this.#last = Math.max(this.#last ?? 0, to);
  }
}
