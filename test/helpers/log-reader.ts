import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { Gap } from "../../protocol/event.ts";
import { WEBSOCKET_PATH } from "../../protocol/wire.ts";
import type { Random } from "../soak/random.ts";
import { patience } from "./patience.ts";

type Json = Readonly<Record<string, unknown>>;

interface Message {
  readonly method?: string;
  readonly id?: number;
  readonly result?: { readonly cursor: number; readonly epoch: string };
  readonly params?: {
    readonly seq: number;
    readonly firstSeq?: number;
    readonly event: Json & { readonly type: string };
  } & Gap;
}

/**
 * Follows a session over connections that break repeatedly, reads at random speed, and builds the transcript from
 * the envelopes alone. Every number must arrive, or be in a gap, exactly once.
 */
export class LogReader {
  /** pi's messages and entries, in the order of their envelopes. */
  readonly transcript: Json[] = [];
  readonly wrong: string[] = [];
  readonly counts = {
    disconnects: 0,
    midStream: 0,
    envelopes: 0,
    gaps: 0,
    restarts: 0,
    entries: 0,
    texts: 0,
    refused: 0,
  };
  readonly #sessionId: string;
  readonly #random: Random;
  #cursor = 0;
  #epoch: string | undefined;
  /** The text of the streaming answer; undefined if a gap covers a part of it. */
  #streaming: { text: string | undefined } | undefined;

  constructor(sessionId: string, random: Random) {
    this.#sessionId = sessionId;
    this.#random = random;
  }

  /** The last number that was handled. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Connects, reads for a while, and breaks the connection. Does not count if no daemon answers. */
  async cutOne(daemon: DaemonFile): Promise<void> {
    const inStream = this.#random.chance(0.6);
    const toRead = inStream || this.#random.chance(0.5) ? this.#random.integer(1, 40) : Number.POSITIVE_INFINITY;
    const before = this.counts.envelopes;
    const isEnough = (): boolean =>
      this.counts.envelopes - before >= toRead && (!inStream || this.#streaming !== undefined);
    // The conversation goes on, so a stream comes, however long that takes.
    const reached = await this.#connected(daemon, inStream ? patience.timeout : this.#random.integer(5, 120), isEnough);
    if (!reached) {
      this.counts.refused += 1;
      return;
    }
    this.counts.disconnects += 1;
    if (this.#streaming !== undefined) this.counts.midStream += 1;
  }

  /** Reads up to this number. */
  async readTo(daemon: DaemonFile, cursor: number): Promise<void> {
    const isThere = (): boolean => this.#cursor >= cursor;
    if (!isThere()) await this.#connected(daemon, patience.timeout, isThere);
    if (!isThere()) this.#fault(`it came to ${this.#cursor}, and not to ${cursor}`);
  }

  /** Returns whether it was connected. */
  async #connected(daemon: DaemonFile, ms: number, isEnough: () => boolean): Promise<boolean> {
    const socket = new WebSocket(`${daemon.url.replace("http", "ws")}${WEBSOCKET_PATH}`, {
      headers: { authorization: `Bearer ${daemon.token}` },
    });
    const over = Promise.withResolvers<void>();
    let reached = false;
    socket.on("error", () => over.resolve());
    socket.on("close", () => over.resolve());
    socket.on("open", () => {
      reached = true;
      const place = { after: this.#cursor, ...(this.#epoch === undefined ? {} : { epoch: this.#epoch }) };
      const params = { sessionId: this.#sessionId, ...place };
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/subscribe", params }));
    });
    let isOver = false;
    socket.on("message", (data: Buffer) => {
      if (isOver) return;
      this.#take(JSON.parse(data.toString("utf8")) as Message);
      if (isEnough()) {
        isOver = true;
        over.resolve();
      } else if (this.#random.chance(0.05)) {
        // A reader that is slow at times: that it waits is what is tested.
        socket.pause();
        setTimeout(() => socket.resume(), this.#random.integer(0, 15));
      }
    });
    const timer = new AbortController();
    await Promise.race([over.promise, sleep(ms, undefined, { signal: timer.signal }).catch(() => {})]);
    timer.abort();
    isOver = true;
    socket.terminate();
    return reached;
  }

  #take(message: Message): void {
    if (message.result !== undefined) {
      this.#epoch = message.result.epoch;
      return;
    }
    const { method, params } = message;
    if (method === undefined || params === undefined) {
      this.#fault(`unexpected: ${JSON.stringify(message)}`);
      return;
    }
    if (method === "session/gap") {
      this.#gap(params);
      return;
    }
    const { seq, firstSeq = seq, event } = params;
    this.#follow(firstSeq, seq);
    this.counts.envelopes += 1;
    if (method === "session/event") this.#event(event);
  }

  #gap({ from, to, reason }: Gap): void {
    if (reason === "log_reset") {
      this.#fault("the log was reset");
      return;
    }
    this.#follow(from, to);
    this.counts.gaps += 1;
    if (reason === "daemon_restart") {
      this.counts.restarts += 1;
      this.#streaming = undefined;
    } else if (this.#streaming !== undefined) this.#streaming.text = undefined;
  }

  #follow(from: number, to: number): void {
    if (from !== this.#cursor + 1) this.#fault(`${from} came after ${this.#cursor}`);
    this.#cursor = to;
  }

  #event(event: Json & { readonly type: string }): void {
    const message = event["message"] as Json | undefined;
    switch (event.type) {
      case "message_start":
        if (message?.["role"] === "assistant") this.#streaming = { text: "" };
        return;
      case "message_update": {
        const { type, delta } = event["assistantMessageEvent"] as Json;
        if (this.#streaming?.text !== undefined && type === "text_delta") this.#streaming.text += String(delta);
        return;
      }
      case "message_end":
        this.transcript.push(message as Json);
        if (message?.["role"] === "assistant") this.#ended(message);
        return;
      case "rpcd_entry":
        this.counts.entries += 1;
        this.transcript.push(event["entry"] as Json);
        return;
      default:
    }
  }

  #ended(message: Json): void {
    const streamed = this.#streaming?.text;
    this.#streaming = undefined;
    if (streamed === undefined) return;
    this.counts.texts += 1;
    const blocks = message["content"] as readonly { readonly type: string; readonly text?: string }[];
    const text = blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
    if (text !== streamed) this.#fault(`the deltas say ${streamed.slice(-80)}, the message ${text.slice(-80)}`);
  }

  #fault(what: string): void {
    if (this.wrong.length < 100) this.wrong.push(what);
  }
}

/** The common part of pi's session file and a transcript from envelopes: the messages, in order. */
export function messagesIn(records: readonly Json[]): readonly unknown[] {
  return records.flatMap((record) => {
    const { type, message, role, customType, content, details } = record;
    if (type === "message") return [message];
    // The time of a custom message's entry differs from the message's.
    if (type === "custom_message" || role === "custom") return [{ role: "custom", customType, content, details }];
    return type === undefined ? [record] : [];
  });
}
