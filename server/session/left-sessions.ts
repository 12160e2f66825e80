import { hasNoMessage } from "../pi/session-file.ts";
import type { Session } from "./session.ts";

export interface LeftSessionsOptions {
  readonly close: (session: Session) => Promise<unknown>;
  /** How long a lost connection may be away. */
  readonly graceMs: number;
  readonly onFault: (error: unknown, sessionId: string) => void;
}

/** Closes sessions without a message, and ephemeral ones, when their last subscriber has left. */
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
    let timer: NodeJS.Timeout | undefined;
    session.journal.subscriptions.onLeft((wasAsked) => {
      clearTimeout(timer);
      const look = (): void =>
        void this.#look(session).catch((error: unknown) => this.#options.onFault(error, session.sessionId));
      timer = setTimeout(look, wasAsked ? 0 : this.#options.graceMs).unref();
    });
  }

  async #look(session: Session): Promise<void> {
    const isLeft = (): boolean => !session.journal.isClosed && !session.journal.subscriptions.hasOthers(undefined);
    if (!isLeft() || !(await isUnused(session)) || !isLeft()) return;
    await this.#options.close(session);
  }
}

/** An ephemeral session has nothing that anyone could come back to. */
async function isUnused({ stored, idleness, file }: Session): Promise<boolean> {
  if (stored.ephemeral !== undefined) return true;
  return idleness.isIdle && (await hasNoMessage(file).catch(() => false)) && idleness.isIdle;
}
