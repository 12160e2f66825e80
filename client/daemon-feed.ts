import type { DaemonEvent, FeedGap, FeedPlace } from "../protocol/feed.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import { BufferOverflowError } from "./local-errors.ts";
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

/** What the feed needs of the peer whose connection it uses. */
interface FeedPeer {
  call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>>;
  /** They share the subscription. */
  readonly watch: { readonly isUsed: boolean };
}

interface Reader {
  /** The last number that it has, and the feed to which it belongs; `undefined`: it wants later events only. */
  position: number | undefined;
  epoch: string | undefined;
  hasBegun: boolean;
  /** What arrives before the answer that says where the reader continues; `undefined` otherwise. */
  held: Item[] | undefined;
  /** Whether late events of an earlier subscription of this connection may still arrive. */
  mayBeStale: boolean;
}

type Item = { readonly kind: "event"; readonly event: DaemonEvent } | { readonly kind: "gap"; readonly gap: FeedGap };

/** A backstop: what arrives before an answer is far below it. */
const maxHeld = 1_000_000;

/**
 * The daemon's feed for any number of readers, over the one subscription that a connection can have. A reader that needs
 * earlier events makes the daemon replay; the other readers skip by `seq` what they already have.
 */
export class DaemonFeed {
  readonly #peer: FeedPeer;
  readonly #readers = new Map<DaemonFeedListener, Reader>();
  /** Counts requests to subscribe: the answer to an earlier one is ignored. */
  #requests = 0;
  #hasSubscribed = false;
  #isSuspended = false;

  constructor(peer: FeedPeer) {
    this.#peer = peer;
  }

  get isFollowed(): boolean {
    return this.#readers.size > 0;
  }

  /** Adds a reader: from `after` on, else from now on. */
  join(listener: DaemonFeedListener, after?: number, epoch?: string): void {
    this.#readers.set(listener, { position: after, epoch, hasBegun: false, held: [], mayBeStale: false });
    if (!this.#isSuspended) void this.#subscribe();
  }

  /** Removes a reader; nothing more is called, not even `end`. */
  leave(listener: DaemonFeedListener): void {
    if (!this.#readers.delete(listener) || this.#readers.size > 0) return;
    this.#requests += 1;
    if (this.#isSuspended || this.#peer.watch.isUsed) return;
    this.#peer.call("daemon/unsubscribe", {}).catch(() => {});
  }

  receive(event: DaemonEvent): void {
    for (const [listener, reader] of [...this.#readers]) this.#deliver(listener, reader, { kind: "event", event });
  }

  receiveGap(gap: FeedGap): void {
    // The answer to the subscription already said so.
    if (gap.reason === "log_reset") return;
    for (const [listener, reader] of [...this.#readers]) this.#deliver(listener, reader, { kind: "gap", gap });
  }

  /** The connection is lost, and with it the subscription. */
  suspend(): void {
    this.#requests += 1;
    this.#isSuspended = true;
    this.#hasSubscribed = false;
    for (const reader of this.#readers.values()) reader.held = [];
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
      const { position = cursor, held } = reader;
      if (held === undefined) continue;
      const isOther = position > cursor || (reader.epoch !== undefined && reader.epoch !== epoch);
      reader.position = isOther ? 0 : position;
      reader.epoch = epoch;
      reader.held = undefined;
      if (!reader.hasBegun) {
        reader.hasBegun = true;
        listener.begin(place);
      }
      if (isOther) listener.gap({ from: 0, to: position, reason: "log_reset" });
      // The first of these may belong to the earlier subscription, the last ones already follow the answer.
      reader.mayBeStale = true;
      for (const item of held) this.#deliver(listener, reader, item);
      reader.mayBeStale &&= mayBeStale;
    }
  }

  #deliver(listener: DaemonFeedListener, reader: Reader, item: Item): void {
    if (this.#readers.get(listener) !== reader) return;
    const { position, held, epoch = "" } = reader;
    if (held !== undefined) {
      if (held.length < maxHeld) held.push(item);
      else this.#fail(listener, new BufferOverflowError(`${maxHeld} events`, position));
      return;
    }
    const [before, last] =
      item.kind === "event" ? [item.event.after, item.event.seq] : [item.gap.from - 1, item.gap.to];
    if (position === undefined || last <= position) return;
    if (before > position && reader.mayBeStale) return;
    reader.position = last;
    reader.mayBeStale = false;
    if (item.kind === "gap") {
      listener.gap({ ...item.gap, from: position + 1 });
      return;
    }
    if (before > position) listener.gap({ from: position + 1, to: before, reason: "unreported" });
    if (this.#readers.get(listener) === reader) listener.receive(item.event, epoch);
  }

  #refused(error: unknown): void {
    for (const [listener, { held }] of [...this.#readers]) {
      if (held !== undefined) this.#fail(listener, error);
    }
  }

  #fail(listener: DaemonFeedListener, error: unknown): void {
    this.#readers.delete(listener);
    listener.end({ kind: "failed", error });
  }
}
