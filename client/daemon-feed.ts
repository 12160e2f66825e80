import type { DaemonEvent, FeedGap, FeedPlace } from "../protocol/feed.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import type { FeedEnd } from "./session-feed.ts";

/** A range of the feed that a reader does not get. `unreported`: the daemon did not say why, which is a fault. */
export type DaemonFeedGap = FeedGap | (Omit<FeedGap, "reason"> & { readonly reason: "unreported" });

/** One reader of the feed. `begin` is called first and once, `end` last and once. None of them may throw. */
export interface DaemonFeedListener {
  begin(place: FeedPlace): void;
  /** Called in the order of `seq`: numbers that the reader does not get. */
  gap(gap: DaemonFeedGap): void;
  /** Each event once, in the order of `seq`. */
  receive(event: DaemonEvent, epoch: string): void;
  end(end: Exclude<FeedEnd, { kind: "session_closed" }>): void;
}

interface Reader {
  /** The last number that it has, and the feed to which it belongs; `undefined`: it wants later events only. */
  position: number | undefined;
  epoch: string | undefined;
  hasBegun: boolean;
  /** Whether it waits for the answer that says where it continues. */
  isHeld: boolean;
  /** Whether late events of an earlier subscription of this connection may still arrive. */
  mayBeStale: boolean;
}

/**
 * The daemon's feed for any number of readers, over the one subscription that a connection can have. A reader that needs
 * earlier events makes the daemon replay; the other readers skip by `seq` what they already have.
 */
export class DaemonFeed {
  readonly #peer: Pick<DaemonPeer, "call" | "sessionListeners">;
  readonly #readers = new Map<DaemonFeedListener, Reader>();
  /** Counts requests to subscribe: the answer to an earlier one is ignored. */
  #requests = 0;
  #hasSubscribed = false;
  #isSuspended = false;

  constructor(peer: Pick<DaemonPeer, "call" | "sessionListeners">) {
    this.#peer = peer;
  }

  get isFollowed(): boolean {
    return this.#readers.size > 0;
  }

  /** Adds a reader: from `after` on, else from now on. */
  join(listener: DaemonFeedListener, after?: number, epoch?: string): void {
    this.#readers.set(listener, { position: after, epoch, hasBegun: false, isHeld: true, mayBeStale: false });
    if (!this.#isSuspended) void this.#subscribe();
  }

  /** Removes a reader; nothing more is called, not even `end`. */
  leave(listener: DaemonFeedListener): void {
    if (!this.#readers.delete(listener) || this.#readers.size > 0) return;
    this.#requests += 1;
    if (this.#isSuspended || this.#peer.sessionListeners.size > 0) return;
    this.#peer.call("daemon/unsubscribe", {}).catch(() => {});
  }

  receive(event: DaemonEvent): void {
    const { seq, after } = event;
    for (const [listener, reader] of [...this.#readers]) {
      const { position, epoch = "" } = reader;
      if (reader.isHeld || position === undefined || seq <= position) continue;
      if (after > position) {
        if (reader.mayBeStale) continue;
        listener.gap({ from: position + 1, to: after, reason: "unreported" });
      }
      this.#moveTo(reader, seq);
      listener.receive(event, epoch);
    }
  }

  receiveGap(gap: FeedGap): void {
    // The answer to the subscription already said so.
    if (gap.reason === "log_reset") return;
    for (const [listener, reader] of [...this.#readers]) {
      const { position } = reader;
      if (reader.isHeld || position === undefined || gap.to <= position) continue;
      if (gap.from > position + 1 && reader.mayBeStale) continue;
      this.#moveTo(reader, gap.to);
      listener.gap({ ...gap, from: position + 1 });
    }
  }

  /** The connection is lost, and with it the subscription. */
  suspend(): void {
    this.#requests += 1;
    this.#isSuspended = true;
    this.#hasSubscribed = false;
    for (const reader of this.#readers.values()) reader.isHeld = true;
  }

  /** Another connection is open: subscribes from where the readers are. */
  resume(): void {
    this.#isSuspended = false;
    if (this.#readers.size > 0) void this.#subscribe();
  }

  end(end: Exclude<FeedEnd, { kind: "session_closed" }>): void {
    this.#requests += 1;
    const listeners = [...this.#readers.keys()];
    this.#readers.clear();
    for (const listener of listeners) listener.end(end);
  }

  async #subscribe(): Promise<void> {
    this.#requests += 1;
    const request = this.#requests;
    const isCurrent = (): boolean => this.#requests === request;
    try {
      if ([...this.#readers.values()].some(({ position }) => position === undefined)) {
        const { feed } = await this.#peer.call("daemon/info", {});
        if (feed === undefined)
          throw new Error("The daemon is older than this client and has no feed. Restart it from the newer package.");
        for (const reader of this.#readers.values()) {
          reader.epoch = reader.position === undefined ? feed.epoch : reader.epoch;
          reader.position ??= feed.cursor;
        }
      }
      const [first] = [...this.#readers.values()].sort((a, b) => (a.position ?? 0) - (b.position ?? 0));
      if (!isCurrent() || first === undefined) return;
      const { position: after = 0, epoch: known } = first;
      const wasSubscribed = this.#hasSubscribed;
      this.#hasSubscribed = true;
      const { cursor = 0, epoch = "" } = await this.#peer.call("daemon/subscribe", {
        after,
        ...(known === undefined ? {} : { epoch: known }),
      });
      if (!isCurrent()) return;
      const isReset = after > cursor || (known !== undefined && known !== epoch);
      this.#answered({ cursor, epoch }, wasSubscribed);
      // Another reader's cursor belongs to another feed.
      const lowest = Math.min(...Array.from(this.#readers.values(), ({ position = 0 }) => position));
      if (!isReset && lowest < after) await this.#subscribe();
    } catch (error) {
      // After a lost connection the next one subscribes again, or `end` is called because there is none.
      if (isCurrent()) this.#refused(error);
    }
  }

  #answered(place: FeedPlace, mayBeStale: boolean): void {
    const { cursor, epoch } = place;
    for (const [listener, reader] of [...this.#readers]) {
      const { position = cursor, isHeld } = reader;
      if (!isHeld) continue;
      const isOther = position > cursor || (reader.epoch !== undefined && reader.epoch !== epoch);
      reader.position = isOther ? 0 : position;
      reader.epoch = epoch;
      reader.isHeld = false;
      reader.mayBeStale = mayBeStale;
      if (!reader.hasBegun) {
        reader.hasBegun = true;
        listener.begin(place);
      }
      if (isOther) listener.gap({ from: 0, to: position, reason: "log_reset" });
    }
  }

  #moveTo(reader: Reader, seq: number): void {
    reader.position = seq;
    reader.mayBeStale = false;
  }

  #refused(error: unknown): void {
    for (const [listener, { isHeld }] of [...this.#readers]) {
      if (!isHeld) continue;
      this.#readers.delete(listener);
      listener.end({ kind: "failed", error });
    }
  }
}
