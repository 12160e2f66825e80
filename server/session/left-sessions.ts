import { hasNoMessage } from "../pi/session-file.ts";
import type { Session } from "./session.ts";

/** What happens to a session with messages. `keep`: nothing; `abort`: its run is aborted; `close`: it is closed. */
export type OnDetach = "keep" | "abort" | "close";

export interface LeftSessionsOptions {
  readonly close: (session: Session) => Promise<unknown>;
  /** How long a lost connection may be away. */
  readonly graceMs: number;
  /** Default: `keep`. */
  readonly onDetach?: OnDetach | undefined;
  readonly onFault: (error: unknown, sessionId: string) => void;
}

/** Work without a message, such as a start, ends sooner. */
const maxWorkMs = 10 * 60_000;
const never = new AbortController().signal;
/** Somebody may have opened the session, and not subscribed yet. */
const momentMs = 500;

/**
 * Closes sessions without a message, and ephemeral ones, when their last subscriber has left or none has come. What
 * happens to others says {@link OnDetach}.
 */
export class LeftSessions {
  readonly #options: LeftSessionsOptions;
  readonly #watched = new WeakSet<Session>();

  constructor(options: LeftSessionsOptions) {
    this.#options = options;
  }

  has(session: Session): boolean {
    return this.#watched.has(session);
  }

  watch(session: Session): void {
    if (this.#watched.has(session)) return;
    this.#watched.add(session);
    const { graceMs, onFault } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const lookIn = (ms: number): void => {
      clearTimeout(timer);
      const look = (): void => void this.#look(session).catch((error: unknown) => onFault(error, session.sessionId));
      timer = setTimeout(look, ms).unref();
    };
    session.journal.subscriptions.onLeft((wasAsked) => lookIn(wasAsked ? Math.min(momentMs, graceMs) : graceMs));
    lookIn(graceMs);
  }

  async #look(session: Session): Promise<void> {
    const { close, onDetach } = this.#options;
    const { journal, stored, idleness, file } = session;
    const isLeft = (): boolean => !journal.isClosed && !journal.subscriptions.hasOthers(undefined);
    if (!isLeft()) return;
    // An ephemeral session has nothing that anyone could come back to.
    if (stored.ephemeral === undefined && onDetach !== "close") {
      if (onDetach === "abort" && session.runId !== undefined) await session.prompting.abort();
      await idleness.wait(maxWorkMs, never);
      if (!(await hasNoMessage(file).catch(() => false)) || !idleness.isIdle) return;
    }
    if (isLeft()) await close(session);
  }
}
