import { type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import type { Unchecked } from "./unchecked.ts";

/** A server-sent event as browsers read it according to the standard. */
export interface SentEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: string;
  readonly json: Unchecked;
}

export interface EventSourceOptions {
  readonly url?: string;
  readonly socketPath?: string;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
}

/** A reader of server-sent events that records them all. */
export class TestEventSource implements Disposable {
  readonly response: IncomingMessage;
  readonly events: SentEvent[] = [];
  readonly comments: string[] = [];
  retry: number | undefined;
  /** Resolves when the response has ended in any way. */
  readonly ended: Promise<void>;
  #rest = "";
  #waiting: { fits: () => boolean; resolve: () => void }[] = [];

  private constructor(response: IncomingMessage) {
    this.response = response;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => this.#read(chunk));
    response.on("error", () => {});
    response.once("close", resolve);
  }

  static open({ url, socketPath, path, headers }: EventSourceOptions): Promise<TestEventSource> {
    const where =
      socketPath === undefined
        ? { host: new URL(url ?? "").hostname, port: new URL(url ?? "").port }
        : { socketPath, host: "localhost" };
    const { promise, resolve, reject } = Promise.withResolvers<TestEventSource>();
    const outgoing = request({ ...where, path, ...(headers === undefined ? {} : { headers }), agent: false });
    outgoing.once("response", (response) => resolve(new TestEventSource(response)));
    outgoing.on("error", reject);
    outgoing.end();
    return promise;
  }

  /** The last event id: the value for `Last-Event-ID`. */
  get lastEventId(): string | undefined {
    return this.events.findLast(({ id }) => id !== undefined)?.id;
  }

  /** The numbers of all notifications, in order. */
  get seqs(): readonly number[] {
    return this.events.filter(({ event }) => event === "message").map(({ json }) => json.params.seq ?? json.params.to);
  }

  /** Resolves when the received events fulfil a condition. */
  until(fits: (source: this) => boolean): Promise<void> {
    if (fits(this)) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ fits: () => fits(this), resolve });
    return promise;
  }

  [Symbol.dispose](): void {
    this.response.destroy();
  }

  #read(chunk: string): void {
    const parts = `${this.#rest}${chunk}`.split(/(?<=(?:\r\n|\n|\r)(?:\r\n|\n|\r))/);
    this.#rest = parts.pop() ?? "";
    if (/(?:\r\n|\n|\r)(?:\r\n|\n|\r)$/.test(this.#rest)) {
      parts.push(this.#rest);
      this.#rest = "";
    }
    for (const part of parts) this.#event(part);
    const now = this.#waiting.filter(({ fits }) => fits());
    this.#waiting = this.#waiting.filter((one) => !now.includes(one));
    for (const { resolve } of now) resolve();
  }

  #event(block: string): void {
    const fields = block
      .split(/\r\n|\n|\r/)
      .filter((line) => line !== "")
      .map((line) => /^([^:]*):? ?(.*)$/s.exec(line) ?? []);
    const values = (wanted: string) => fields.filter(([, name]) => name === wanted).map(([, , value = ""]) => value);
    this.comments.push(...values(""));
    const [retry] = values("retry");
    if (retry !== undefined) this.retry = Number(retry);
    const data = values("data");
    if (data.length === 0) return;
    const text = data.join("\n");
    this.events.push({
      event: values("event").at(-1) ?? "message",
      id: values("id").at(-1),
      data: text,
      json: JSON.parse(text),
    });
  }
}
