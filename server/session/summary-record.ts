import type { RunOutcome } from "../../protocol/prompt.ts";
import type { SessionSummary } from "../../protocol/session.ts";
import { type FileTotal, fileTotal, usageOf } from "../context/cost/file-total.ts";
import type { RunWords, SessionContext } from "../core/session-context.ts";
import type { SessionTextStore } from "../store/session-texts.ts";

interface StoredSummary {
  readonly shown: SessionSummary;
  /** What the requests in the session file have cost, up to the place where reading stopped. */
  readonly total?: FileTotal;
  /** The run has ended, and the file was not read since. */
  readonly isDue?: true;
}

/**
 * The summary of a session, made at the end of each run from what pi has reported and from what was added to the session's
 * file. It is in memory and in the store, so that a list of sessions reads no file.
 */
export class SummaryRecord {
  readonly #session: SessionContext;
  readonly #store: SessionTextStore;
  #stored: StoredSummary | undefined;
  #isForgotten = false;
  /** Reads of the file, one after another. */
  #read: Promise<void> = Promise.resolve();

  constructor(session: SessionContext, store: SessionTextStore) {
    this.#session = session;
    this.#store = store;
    this.#stored = this.#load();
    session.events.on("runEnded", (outcome, said) => this.#runEnded(outcome, said));
    session.events.on("compacted", () => this.#compacted());
  }

  /** The same object while nothing in it changes. */
  get current(): SessionSummary | undefined {
    return this.#stored?.shown;
  }

  /** Resolves when the file has been read for the runs that have ended. */
  get complete(): Promise<void> {
    return this.#read;
  }

  /** A former daemon may have ended before it had read the file. */
  recover(): void {
    if (this.#stored?.isDue === true) this.#readFile();
  }

  /** The session is over. */
  forget(): void {
    this.#isForgotten = true;
    // Failed writes are retried.
    this.#store.delete(this.#session.sessionId).catch(() => {});
  }

  #load(): StoredSummary | undefined {
    try {
      const text = this.#store.get(this.#session.sessionId);
      return text === undefined ? undefined : (JSON.parse(text) as StoredSummary);
    } catch (error) {
      this.#session.log.warn({ err: error }, "cannot read the stored summary of a session");
      return undefined;
    }
  }

  #runEnded(outcome: RunOutcome, { lastText, usedTokens }: RunWords): void {
    const former = this.#stored;
    const { usage, ...shown } = former?.shown ?? {};
    this.#put({
      ...(former?.total === undefined ? {} : { total: former.total }),
      shown: {
        ...shown,
        at: Date.now(),
        outcome,
        ...(lastText === undefined ? {} : { lastText }),
        ...(usage === undefined ? {} : { usage }),
        ...(usedTokens === undefined
          ? {}
          : { contextUsage: contextUsage(usedTokens, this.#session.record.contextWindow) }),
      },
      isDue: true,
    });
    this.#readFile();
  }

  #compacted(): void {
    const stored = this.#stored;
    if (stored?.shown.contextUsage === undefined) return;
    const { contextUsage: _, ...shown } = stored.shown;
    this.#put({ ...stored, shown });
    this.#session.events.emit("changed");
  }

  #readFile(): void {
    this.#read = this.#read.then(() => this.#readOn());
  }

  /** Never rejects. */
  async #readOn(): Promise<void> {
    const { record, events, log, journal } = this.#session;
    const { file, ephemeral } = record.stored;
    if (this.#stored?.isDue !== true || this.#isForgotten) return;
    const { total: former } = this.#stored;
    const total =
      ephemeral === true
        ? undefined
        : await fileTotal(file, former).catch((error: unknown) => {
            log.warn({ err: error }, "cannot read what was added to a session's file; will retry at the end of a run");
          });
    if (this.#isForgotten || journal.isClosed) return;
    const usage = total && usageOf(total);
    const { usage: _, ...shown } = this.#stored.shown;
    this.#put({
      ...(total === undefined ? {} : { total }),
      shown: { ...shown, ...(usage === undefined ? {} : { usage }) },
    });
    events.emit("changed");
  }

  #put(stored: StoredSummary): void {
    this.#stored = stored;
    if (this.#isForgotten) return;
    this.#store.put(this.#session.sessionId, JSON.stringify(stored)).catch((error: unknown) => {
      this.#session.log.warn({ err: error }, "cannot store the summary of a session; will retry");
    });
  }
}

function contextUsage(tokens: number, contextWindow: number | undefined): NonNullable<SessionSummary["contextUsage"]> {
  if (contextWindow === undefined) return { tokens };
  return { tokens, contextWindow, percent: (tokens / contextWindow) * 100 };
}
