import { hash } from "node:crypto";
import type { Gap } from "../../protocol/event.ts";
import type { Violation } from "./history.ts";

interface Feed {
  readonly after: number | undefined;
  first?: number;
  last?: number;
}

/** Checks the numbers of the sessions' logs, as each connection gets them: one up each time, and none for two things. */
export class SeqWatch {
  readonly violations: Violation[] = [];
  readonly #feeds = new Map<string, Feed>();
  /** What each number of each session stood for, over all connections and all lives of the daemon. */
  readonly #contents = new Map<string, Map<number, string>>();
  #frames = 0;

  get frames(): number {
    return this.#frames;
  }

  /** A connection is about to subscribe. What was replayed comes before the answer. */
  subscribe(connection: string, session: string, after: number | undefined): void {
    this.#feeds.set(`${connection} ${session}`, { after });
  }

  /** The answer to a subscription. */
  subscribed(connection: string, session: string, answer: { readonly cursor: number; readonly gap?: Gap }): void {
    const feed = this.#feeds.get(`${connection} ${session}`);
    if (feed === undefined) return;
    const { cursor, gap } = answer;
    if (gap?.reason === "log_reset") {
      this.#say(session, `${connection} asked for what is behind ${feed.after}, and the log ends at ${cursor}`);
    }
    const begin = gap === undefined ? feed.after : gap.to;
    if (begin !== undefined && feed.first !== undefined && feed.first !== begin + 1 && gap?.reason !== "log_reset") {
      this.#say(session, `${connection} was to begin behind ${begin}, and got ${feed.first}`);
    }
    // What is new since the call may come before its answer.
    if (feed.last !== undefined && feed.last < cursor) {
      this.#say(session, `${connection} got up to ${feed.last}, and the answer's cursor is ${cursor}`);
    }
    feed.last ??= cursor;
  }

  /** A numbered notification. `text` is the frame as it came. */
  told(connection: string, session: string, seq: number, text: string): void {
    this.#frames += 1;
    const feed = this.#feeds.get(`${connection} ${session}`);
    if (feed !== undefined) {
      if (feed.last !== undefined && seq !== feed.last + 1) {
        this.#say(session, `${connection} got ${seq} behind ${feed.last}`);
      }
      feed.first ??= seq;
      feed.last = seq;
    }
    const contents = this.#contents.get(session) ?? new Map<number, string>();
    this.#contents.set(session, contents);
    const content = hash("sha1", text, "base64");
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

  #say(session: string, message: string): void {
    if (this.violations.length < 1_000) this.violations.push({ kind: "seq", message, session });
  }
}
