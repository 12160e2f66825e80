import { orAborted } from "./abortable.ts";
import type { Violation } from "./dialect.ts";
import { type LogEntry, type ReceivedRequest, RecordedRequest } from "./log.ts";

export interface WaitOptions {
  /** Default 20 000. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface LogLimits {
  readonly maxEntries: number;
  /** The maximum of bytes of request bodies. */
  readonly maxBytes: number;
}

export interface Received {
  readonly request: Omit<ReceivedRequest, "n">;
  readonly violations: readonly Violation[];
}

interface Waiter {
  readonly matches: (entry: LogEntry) => boolean;
  readonly resolve: (entry: LogEntry) => void;
  readonly reject: (error: unknown) => void;
}

/** Only a request that never comes takes so long. */
const defaultTimeoutMs = 200_000;

/** All requests in their order. Beyond its limits the oldest are dropped, and counted. */
export class RequestLog {
  readonly #entries: RecordedRequest[] = [];
  readonly #waiters = new Set<Waiter>();
  readonly #limits: LogLimits;
  #appended = 0;
  #dropped = 0;
  #bytes = 0;
  #closedBy: Error | undefined;

  constructor(limits: LogLimits) {
    this.#limits = limits;
  }

  get entries(): readonly LogEntry[] {
    return this.#entries;
  }

  get droppedCount(): number {
    return this.#dropped;
  }

  append({ request, violations }: Received): RecordedRequest {
    this.#appended += 1;
    const entry = new RecordedRequest({ ...request, n: this.#appended }, violations);
    this.#entries.push(entry);
    this.#bytes += entry.bodyBytes;
    this.#trim();
    for (const waiter of [...this.#waiters]) {
      try {
        if (!waiter.matches(entry)) continue;
        waiter.resolve(entry);
      } catch (error) {
        waiter.reject(error);
      }
      this.#waiters.delete(waiter);
    }
    return entry;
  }

  /** The first entry that matches, in the log or later. */
  async waitFor(matches: (entry: LogEntry) => boolean, options: WaitOptions = {}): Promise<LogEntry> {
    const known = this.#entries.find(matches);
    if (known !== undefined) return known;
    if (this.#closedBy !== undefined) throw this.#closedBy;
    const { timeoutMs = defaultTimeoutMs } = options;
    const { promise, resolve, reject } = Promise.withResolvers<LogEntry>();
    const waiter: Waiter = { matches, resolve, reject };
    this.#waiters.add(waiter);
    const timer = setTimeout(() => reject(new Error(this.#timeoutMessage(timeoutMs))), timeoutMs);
    try {
      return await (options.signal === undefined ? promise : orAborted(promise, options.signal));
    } finally {
      clearTimeout(timer);
      this.#waiters.delete(waiter);
    }
  }

  /** Rejects all waits. The log is kept. */
  close(reason: Error): void {
    this.#closedBy = reason;
    for (const waiter of this.#waiters) waiter.reject(reason);
    this.#waiters.clear();
  }

  #trim(): void {
    while (
      this.#entries.length > this.#limits.maxEntries ||
      (this.#bytes > this.#limits.maxBytes && this.#entries.length > 1)
    ) {
      const oldest = this.#entries.shift();
      this.#bytes -= oldest?.bodyBytes ?? 0;
      this.#dropped += 1;
    }
  }

  #timeoutMessage(timeoutMs: number): string {
    const seen = this.#entries.slice(-10).map((entry) => {
      const last = entry.messages.at(-1);
      const text = (last?.texts.at(-1) ?? "").slice(0, 60);
      return `  ${entry.n}. ${entry.api}, ${entry.messages.length} messages, ${entry.outcome ?? "open"}, last ${last?.role ?? "none"}: ${JSON.stringify(text)}`;
    });
    const tail =
      seen.length === 0 ? "The log has no request." : `The last of ${this.#appended} requests:\n${seen.join("\n")}`;
    return `No request matched within ${timeoutMs} ms. ${tail}`;
  }
}
