import { WireError } from "../../protocol/errors.ts";
import { hasPartOptions } from "../context/parts-config.ts";
import type { Session } from "./session.ts";

/** States in which pi writes nothing to the session's file. */
const quiet: ReadonlySet<string> = new Set(["hibernated", "idle", "crashed", "closed"]);

/**
 * The sessions of the daemon by id: open ones, those that are being created, and those that are being closed. It
 * exists before everything that looks sessions up; the registry fills it.
 */
export class SessionDirectory {
  readonly #open = new Map<string, Session>();
  /** Sessions that clients do not see yet. Their children may run. */
  readonly creating = new Set<Session>();
  /** The same by id, from the first step of their creation. */
  readonly #making = new Map<string, Promise<Session>>();
  /** Until their data are deleted. */
  readonly #ending = new Map<string, Promise<unknown>>();
  #refusal: WireError | undefined;

  find(sessionId: string): Session | undefined {
    return this.#open.get(sessionId);
  }

  /** Throws `session_not_found`. */
  get(sessionId: string): Session {
    const session = this.#open.get(sessionId);
    if (session !== undefined) return session;
    throw new WireError("session_not_found", `There is no session "${sessionId}".`, { sessionId });
  }

  /** The open sessions, newest first. */
  all(): readonly Session[] {
    return [...this.#open.values()].reverse();
  }

  /** The open sessions and those that are being created. */
  withCreating(): readonly Session[] {
    return [...this.#open.values(), ...this.creating];
  }

  add(session: Session): void {
    this.#open.set(session.sessionId, session);
  }

  /** Returns whether it was open. */
  remove({ sessionId }: Session): boolean {
    return this.#open.delete(sessionId);
  }

  /** The session of that id that is being created or opened. */
  making(sessionId: string): Promise<Session> | undefined {
    return this.#making.get(sessionId);
  }

  /** An id belongs to one session: until `work` has ended, {@link making} returns its outcome. */
  make(sessionId: string, work: () => Promise<Session>): Promise<Session> {
    const made = work().finally(() => this.#making.delete(sessionId));
    this.#making.set(sessionId, made);
    return made;
  }

  /** Whether a session of that id is being closed. */
  isEnding(sessionId: string): boolean {
    return this.#ending.has(sessionId);
  }

  /** The session is being closed until `closed` has settled. */
  ending({ sessionId }: Session, closed: Promise<unknown>): void {
    const ending = Promise.allSettled([closed, this.#ending.get(sessionId)]).then(() => {
      if (this.#ending.get(sessionId) === ending) this.#ending.delete(sessionId);
    });
    this.#ending.set(sessionId, ending);
  }

  /** Resolves when no session of that id is being closed. */
  async ended(sessionId: string): Promise<void> {
    for (let ending = this.#ending.get(sessionId); ending !== undefined; ending = this.#ending.get(sessionId)) {
      await ending;
    }
  }

  /** Number of open sessions and of those that are being created. */
  get size(): number {
    return this.#open.size + this.#making.size;
  }

  /** Why no session and no pi may be started any more. */
  get refusal(): WireError | undefined {
    return this.#refusal;
  }

  /** Throws {@link refusal}. */
  refuseWhenEnding(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /** The daemon is shutting down. */
  refuseStarts(): void {
    this.#refusal ??= new WireError("shutting_down", "The daemon is shutting down.");
  }

  /**
   * Whether a session may have moved texts out that its file does not mention yet: a run is active, it exists only in
   * its pi's memory, or it is being created.
   */
  get isAnyUnwritten(): boolean {
    if (this.#making.size > 0) return true;
    return this.all().some(
      ({ stored: { options, ephemeral }, state }) =>
        hasPartOptions(options) && (ephemeral === true || !quiet.has(state.kind)),
    );
  }
}
