import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import type { RpcResponse } from "../../protocol/wire.ts";
import type { Frame } from "../frames/frame.ts";
import type { Peer } from "../rpc/call.ts";
import type { Conversation } from "../rpc/dispatcher.ts";
import type { Grant } from "../rpc/grant.ts";
import type { Lane } from "../rpc/turns.ts";
import type { BufferBudget } from "./buffer-budget.ts";
import { EventWriter } from "./frame-writer.ts";
import type { EdgeLimits } from "./limits.ts";
import { Outbox, type SlowReader } from "./outbox.ts";

export interface EventStreamOptions {
  readonly response: ServerResponse;
  readonly socket: Socket;
  readonly converse: (peer: Peer) => Conversation;
  readonly limits: EdgeLimits;
  readonly budget: BufferBudget;
  /** The grant of its token. */
  readonly grant: Grant | undefined;
  /** The lane of its token. */
  readonly lane: Lane;
  readonly log: Logger;
}

type EndReason = "session_closed" | "shutting_down" | "slow_reader";

const updatedHead = Buffer.from('{"jsonrpc":"2.0","method":"session/updated"', "latin1");

/**
 * One response of server-sent events: the notifications of a subscription, as a WebSocket would get them. It is a peer
 * that makes only one call. The body ends with the socket, so it needs no chunks.
 */
export class EventStream implements Peer {
  readonly id = randomUUID();
  readonly #options: EventStreamOptions;
  readonly #gone = new AbortController();
  readonly #conversation: Conversation;
  readonly #writer: EventWriter;
  readonly #outbox: Outbox;
  #isOpen = false;
  #isEnding = false;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    const { response, socket, limits, budget } = options;
    this.#writer = new EventWriter(socket, limits.socketWindowBytes);
    this.#outbox = new Outbox({
      socket,
      isOpen: () => this.#isOpen,
      limits,
      budget,
      grant: options.grant,
      lane: options.lane,
      writer: this.#writer,
      onOverflow: (slow) => this.#overflow(slow),
    });
    this.#conversation = options.converse(this);
    response.once("close", () => this.#end());
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Makes the call for the subscription. Its notifications wait until the stream is opened. */
  call(method: string, params: object): RpcResponse | Promise<RpcResponse> {
    return this.#conversation.call(method, params);
  }

  /** Writes the head of the response, and the subscription's result as the first event. */
  open(result: Readonly<Record<string, unknown>>, resumes: boolean): void {
    const { response, socket, limits } = this.#options;
    if (this.gone.aborted) return;
    const { epoch, cursor } = result;
    this.#writer.epoch = typeof epoch === "string" ? epoch : undefined;
    socket.setTimeout(0);
    response.removeHeader("transfer-encoding");
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      connection: "close",
    });
    response.flushHeaders();
    // A client that resumes has a cursor already, and the events between it and the newest number are not sent yet.
    const id = resumes || this.#writer.epoch === undefined ? "" : `id: ${this.#writer.epoch}:${String(cursor)}\n`;
    socket.write(`retry: ${limits.eventRetryMs}\n${event("subscribed", result, id)}`);
    this.#isOpen = true;
    this.#outbox.flush();
  }

  send(frame: Frame): void {
    this.#outbox.send(frame);
    if (!frame.isDelta && frame.seq > 0 && saysClosed(frame.bytes)) this.end("session_closed");
  }

  drained(): Promise<void> | undefined {
    return this.#outbox.drained();
  }

  inTurn<T>(work: () => T): T | Promise<Awaited<T>> {
    return this.#options.lane.pass(work);
  }

  /** Writes a comment if no events wait, because peers and proxies close silent streams. */
  beat(): void {
    const { socket } = this.#options;
    if (this.#isOpen && this.#outbox.heldBytes === 0 && socket.writableLength === 0) socket.write(":\n\n");
  }

  /** Sends waiting events and an `end` event with the reason, then closes. Later calls do nothing. */
  end(reason: EndReason, details: object = {}): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    const { response, socket, limits } = this.#options;
    if (!this.#isOpen) {
      this.#end();
      return;
    }
    this.#outbox.finish();
    this.#isOpen = false;
    if (!this.#writer.isTorn) socket.write(event("end", { reason, ...details }));
    response.end();
    // Ends the socket of a peer that does not read.
    const cut = setTimeout(() => socket.destroy(), limits.closeTimeoutMs).unref();
    socket.once("close", () => clearTimeout(cut));
  }

  #overflow({ bound, bufferedBytes, sent }: SlowReader): void {
    this.#options.log.warn({ connectionId: this.id, bound, bufferedBytes }, "a stream of events is not read");
    const [after] = sent.values();
    this.end("slow_reader", after === undefined ? {} : { epoch: this.#writer.epoch, after });
  }

  #end(): void {
    this.#isOpen = false;
    this.#outbox.close();
    this.#gone.abort();
    this.#conversation.end();
  }
}

function event(name: string, data: object, id = ""): string {
  return `${id}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Returns whether a frame is the last notification of a session. */
function saysClosed(bytes: Buffer): boolean {
  if (bytes.compare(updatedHead, 0, updatedHead.length, 0, updatedHead.length) !== 0) return false;
  const { params } = JSON.parse(bytes.toString("utf8")) as { params: { session: { state: string } } };
  return params.session.state === "closed";
}
