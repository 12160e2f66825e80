import { hash } from "node:crypto";
import type { Gap } from "../../protocol/event.ts";
import type { Violation } from "./history.ts";

interface Feed {
  readonly after: number | undefined;
  first?: number;
  last: number | undefined;
}

/** Checks the numbers of the sessions' logs on each connection: increasing by one, and never used twice. */
export class SeqWatch {
  readonly violations: Violation[] = [];
  readonly #feeds = new Map<string, Feed>();
  /** The meaning of each number of each session, over all connections and all lives of the daemon. */
  readonly #contents = new Map<string, Map<number, string>>();
  /** When the store failed, in the numbers that a log has then: it continues from the time. */
  readonly #failures: { readonly from: number; to: number }[] = [];
  #frames = 0;

  get frames(): number {
    return this.#frames;
  }

  /** A connection is about to subscribe. Replayed events come after the answer. */
  subscribe(connection: string, session: string, after: number | undefined): void {
    this.#feeds.set(`${connection} ${session}`, { after, last: after });
  }

  /** The answer to a subscription; later events may have been seen already. */
  subscribed(connection: string, session: string, { cursor }: { readonly cursor: number }): void {
    const feed = this.#feeds.get(`${connection} ${session}`);
    if (feed === undefined || feed.after !== undefined) return;
    if (feed.first !== undefined && feed.first !== cursor + 1) {
      this.#say(session, `${connection} should begin after ${cursor}, and got ${feed.first}`);
    }
    feed.last ??= cursor;
  }

  /**
   * The store fails until the returned function is called: a log may use numbers that it could not reserve, and a later
   * daemon does not know them.
   */
  storeFails(): () => void {
    const failure = { from: Date.now() * 1_000, to: Number.POSITIVE_INFINITY };
    this.#failures.push(failure);
    return () => {
      failure.to = Date.now() * 1_000;
    };
  }

  /** A gap reported by the daemon. */
  gap(connection: string, session: string, { from, to, reason }: Gap): void {
    const feed = this.#feeds.get(`${connection} ${session}`);
    if (reason === "log_reset" && feed?.after !== undefined && this.#mayBeUnreserved(feed.after)) {
      feed.last = undefined;
    } else if (reason === "log_reset") {
      this.#say(session, `${connection} subscribed after ${feed?.after}, which is not a number of the log`);
    } else this.#follow(connection, session, from, to);
  }

  /** A numbered notification. `text` is the unprocessed frame. */
  told(connection: string, session: string, seq: number, text: string, firstSeq = seq): void {
    this.#frames += 1;
    this.#follow(connection, session, firstSeq, seq);
    // Envelopes may be merged for one connection and not for another.
    if (firstSeq !== seq) return;
    const contents = this.#contents.get(session) ?? new Map<number, string>();
    this.#contents.set(session, contents);
    // Nothing keeps the time of a delta: a later daemon reads pi's record again.
    const content = hash("sha1", isDelta(text) ? text.replace(/"at":\d+/, "") : text, "base64");
    const before = contents.get(seq);
    if (before === undefined) contents.set(seq, content);
    else if (before !== content)
      this.#say(session, `${seq} was used for two things; now (${connection}): ${text.slice(0, 200)}`);
  }

  /** The session is over: its numbers need not be remembered. */
  forget(session: string): void {
    this.#contents.delete(session);
    for (const key of this.#feeds.keys()) if (key.endsWith(` ${session}`)) this.#feeds.delete(key);
  }

  #follow(connection: string, session: string, from: number, to: number): void {
    const feed = this.#feeds.get(`${connection} ${session}`);
    if (feed === undefined) return;
    if (feed.last !== undefined && from !== feed.last + 1) {
      this.#say(session, `${connection} got ${from} after ${feed.last}`);
    }
    feed.first ??= from;
    feed.last = to;
  }

  #mayBeUnreserved(seq: number): boolean {
    return this.#failures.some(({ from, to }) => seq >= from && seq <= to);
  }

  #say(session: string, message: string): void {
    if (this.violations.length < 1_000) this.violations.push({ kind: "seq", message, session });
  }
}

function isDelta(text: string): boolean {
  return /"event":\{"type":"(?:message|tool_execution|bash_execution)_update"/.test(text);
}
