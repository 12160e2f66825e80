import type { Outbox } from "./outbox.ts";
import type { FollowingEnd, Place, Port, SessionNotification } from "./port.ts";

export interface FollowingOptions {
  readonly sessionId: string;
  readonly port: Port;
  readonly outbox: Pick<Outbox, "isFull" | "emptied">;
  readonly receive: (notification: SessionNotification) => void;
  /** Events are missing here. `onlyDeltas`: later events have their complete content. */
  readonly lose: (gap: { readonly onlyDeltas: boolean | undefined }) => void;
  /** Tells from pi's entries what the log has lost, as long as `isWanted`. */
  readonly tellMissed: (isWanted: () => boolean) => Promise<void>;
  readonly onEnd: (end: FollowingEnd) => void;
}

/**
 * Follows a session's log for a client. Nothing is lost for a client that does not read for a while: the log, or pi's
 * entries, have it later.
 */
export class Following {
  readonly #options: FollowingOptions;
  #leave: (() => void) | undefined;
  #place: Place | undefined;
  /** Otherwise nothing is taken: the client does not read, or gets the history, or what it has missed. */
  #reading: "all" | "full" | "replay" | "missed" = "all";
  #isOver = false;
  /** Waits until events up to a number are out. */
  readonly #waits = new Set<{ readonly cursor: number; readonly resolve: () => void }>();

  constructor(options: FollowingOptions) {
    this.#options = options;
  }

  /**
   * Follows the session from `place` on, or from before what is open in its run. Resolves when that has begun, or cannot.
   */
  start(place?: Place): Promise<void> {
    this.#reading = "all";
    return this.#join(place);
  }

  /** Takes nothing more until {@link resume}, which goes on from here. Resolves when it is known where that is. */
  hold(): Promise<void> {
    this.#reading = "replay";
    return this.#join();
  }

  /** Goes on after {@link hold}. */
  resume(): Promise<void> {
    return this.start(this.#place);
  }

  /** Resolves when everything is out that the session has said until now, or the client has left it. */
  async caughtUp(): Promise<void> {
    const { port, sessionId } = this.#options;
    const { cursor } = await port.call("session/get", { sessionId });
    if (this.#isOver || (this.#place?.after ?? 0) >= cursor) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waits.add({ cursor, resolve });
    await promise;
  }

  leave(): void {
    this.#isOver = true;
    this.#leave?.();
    for (const { resolve } of this.#waits) resolve();
  }

  #join(place?: Place): Promise<void> {
    const { port, sessionId } = this.#options;
    const begun = Promise.withResolvers<void>();
    const leave = port.follow(
      sessionId,
      {
        begin: ({ cursor, epoch }) => {
          this.#place = { after: cursor, epoch };
          if (this.#reading === "all") this.#advance(cursor);
          begun.resolve();
        },
        resume: ({ epoch }) => {
          if (this.#place !== undefined) this.#place = { ...this.#place, epoch };
        },
        receive: (notification) => this.#receive(notification),
        gap: ({ to, onlyDeltas }) => {
          if (this.#reading !== "all") return;
          this.#options.lose({ onlyDeltas });
          if (onlyDeltas === true) this.#advance(to);
          else void this.#tellMissed({ ...this.#place, after: to });
        },
        end: (end) => {
          begun.resolve();
          if (!this.#isOver) this.#options.onEnd(end);
        },
      },
      place,
    );
    this.#leave = () => {
      leave();
      begun.resolve();
    };
    return begun.promise;
  }

  #receive(notification: SessionNotification): void {
    if (this.#reading !== "all") return;
    this.#options.receive(notification);
    const { params } = notification;
    if ("seq" in params) this.#advance(params.seq);
    if (this.#options.outbox.isFull) void this.#pause();
  }

  /** What happens meanwhile comes from the session's log, once the client has read the rest. */
  async #pause(): Promise<void> {
    this.#reading = "full";
    await this.#options.outbox.emptied;
    // A replay that has begun meanwhile goes on by itself.
    if (!this.#isOver && this.#reading === "full") void this.resume();
  }

  /** The log has lost more than deltas up to this place: pi's entries have the rest. */
  async #tellMissed(place: Place): Promise<void> {
    this.#reading = "missed";
    const isWanted = (): boolean => !this.#isOver && this.#reading === "missed";
    await this.#options.tellMissed(isWanted);
    if (!isWanted()) return;
    this.#reading = "all";
    this.#advance(place.after);
    void this.#join(place);
  }

  #advance(seq: number): void {
    this.#place = { ...this.#place, after: seq };
    for (const wait of this.#waits) {
      if (wait.cursor > seq) continue;
      this.#waits.delete(wait);
      wait.resolve();
    }
  }
}
