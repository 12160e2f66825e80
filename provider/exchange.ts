import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { orAborted, untilAborted } from "./abortable.ts";
import type { Outcome, RecordedRequest } from "./log.ts";
import type { Pause } from "./reply.ts";

/** One response in progress, with its log entry. Every wait rejects when the connection or the provider ends. */
export class Exchange {
  readonly entry: RecordedRequest;
  readonly #response: ServerResponse;
  readonly #signal: AbortSignal;

  constructor(entry: RecordedRequest, response: ServerResponse, signal: AbortSignal) {
    this.entry = entry;
    this.#response = response;
    this.#signal = signal;
  }

  async pause(pause: Pause): Promise<void> {
    if (pause.kind === "hold") await pause.gate.pass(this.#signal);
    else await sleep(pause.delayMs, undefined, { signal: this.#signal });
  }

  /** Sends status and headers at once, without waiting for a body. */
  sendHeaders(status: number, headers: Readonly<Record<string, string>>): void {
    this.#signal.throwIfAborted();
    this.#response.writeHead(status, { "request-id": `req_${this.entry.n}`, ...headers });
    this.#response.flushHeaders();
    this.entry.recordHeaders(status);
  }

  /** Resolves when the system has accepted the text. */
  async write(text: string): Promise<void> {
    if (text === "") return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#response.write(text, (error) => (error ? reject(error) : resolve()));
    await orAborted(promise, this.#signal);
  }

  /** Ends the body properly. */
  async finish(outcome: Outcome): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#response.end(resolve);
    await orAborted(promise, this.#signal);
    this.entry.recordEnd(outcome);
  }

  reset(): void {
    this.#signal.throwIfAborted();
    this.entry.recordEnd("reset");
    this.#response.socket?.resetAndDestroy();
  }

  hang(): Promise<never> {
    return untilAborted(this.#signal);
  }
}
