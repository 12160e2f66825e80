import type { Covers, SessionScope } from "../core/session-scope.ts";

interface Answerer {
  readonly clientId: string | undefined;
  readonly covers: Covers | undefined;
}

/** A connection that answers. */
export interface AnsweringPeer {
  readonly id: string;
  readonly gone: AbortSignal;
}

/** The connections that can answer the dialogs of all sessions, in addition to those that follow a session. */
export class DialogAnswerers {
  readonly #answerers = new Map<string, Answerer>();
  readonly #removals = new WeakMap<AnsweringPeer["gone"], () => void>();
  #onChanged: () => void = () => {};

  /** Calls `onChanged` after each change. */
  onChanged(onChanged: () => void): void {
    this.#onChanged = onChanged;
  }

  /** `covers`: the sessions that it may see. Default: all. */
  add({ id, gone }: AnsweringPeer, { clientId, covers }: Partial<Answerer>): void {
    if (gone.aborted) return;
    this.#answerers.set(id, { clientId, covers });
    if (!this.#removals.has(gone)) {
      const remove = (): void => this.remove(id);
      this.#removals.set(gone, remove);
      gone.addEventListener("abort", remove, { once: true });
    }
    this.#onChanged();
  }

  remove(id: string): void {
    if (this.#answerers.delete(id)) this.#onChanged();
  }

  /** Assigns a connection to its client. */
  named(id: string, clientId: string): void {
    const known = this.#answerers.get(id);
    if (known === undefined || known.clientId === clientId) return;
    this.#answerers.set(id, { ...known, clientId });
    this.#onChanged();
  }

  /** Whether this connection can answer the dialogs of a session. */
  has(id: string, scope: SessionScope): boolean {
    const answerer = this.#answerers.get(id);
    return answerer !== undefined && answerer.covers?.(scope) !== false;
  }

  /** How many can answer the dialogs of a session and are not `isCounted` otherwise. */
  count(scope: SessionScope, isCounted: (id: string) => boolean): number {
    let count = 0;
    for (const id of this.#answerers.keys()) if (!isCounted(id) && this.has(id, scope)) count += 1;
    return count;
  }

  /** Whether a connection of this client can answer the dialogs of a session, other than some connections. */
  hasClient(clientId: string, scope: SessionScope, without?: ReadonlySet<string>): boolean {
    for (const [id, answerer] of this.#answerers)
      if (answerer.clientId === clientId && without?.has(id) !== true && this.has(id, scope)) return true;
    return false;
  }
}
