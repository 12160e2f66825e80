import type { Journal } from "../log/journal.ts";
import { KeptPlace } from "../log/kept-place.ts";
import type { Child } from "../pi/child.ts";
import type { KeeperLink } from "../pi/stdio.ts";
import type { ChildPlace, ChildStore, LogPlace, OwedNotification, Placing, SentAnswer } from "../store/children.ts";

export interface ChildKeepingOptions {
  readonly child: Child;
  readonly keeper: KeeperLink;
  /** What the next daemon needs to go on with it. */
  readonly facts: object;
  /** Where a former daemon was. Default: the child is new. */
  readonly left?: ChildPlace | undefined;
  readonly store: ChildStore;
  readonly journal: Journal;
  /** Notifications of stored changes that were not said yet. */
  readonly owed: () => readonly OwedNotification[];
  readonly answers: () => readonly SentAnswer[];
  /** The child's output is no longer a repetition. */
  readonly onReplayed: () => void;
}

/** How long, and how much of, the output of a child is kept for clients that are late: half of what its keeper holds. */
const keeping = { keepMs: 10_000, maxBytes: 4 * 1024 * 1024 };

/** A store that takes longer, or fails, does not stop pi: its output is acknowledged without it. */
const maxStoreMs = 5_000;

/** The place is stored at the latest when this much of the output could be forgotten, or half of it after the last time. */
const storeAfterBytes = 1024 * 1024;

/**
 * Stores for the next daemon how far this one is with a child's output, and lets the keeper forget what no daemon needs
 * any more. A child that a former daemon left first repeats output that this daemon knows.
 */
export class ChildKeeping {
  readonly #options: ChildKeepingOptions;
  readonly #kept: KeptPlace;
  /** The newest number at {@link Child.handled}. */
  #seq: number;
  /** Effects of records from here on wait. */
  #heldAt: LogPlace | undefined;
  #isHeldBack = false;
  #isReplaying: boolean;
  #newest: ChildPlace | undefined;
  readonly #placeOf = (): Placing | undefined => this.#place();
  /** When {@link Child.handled} reaches it, the place is stored. */
  #dueAt: number;
  /** What the keeper may forget. */
  #acked: number;
  /** Set while more output is unacknowledged than is kept for clients. */
  #late: NodeJS.Timeout | undefined;
  /** Decided prompts whose outcome is not stored yet. */
  #undecided: readonly string[] = [];

  constructor(options: ChildKeepingOptions) {
    const { child, journal, left } = options;
    this.#options = options;
    this.#seq = journal.cursor;
    this.#isReplaying = left !== undefined;
    const here = { offset: child.handled, seq: journal.cursor };
    this.#kept = new KeptPlace(journal.isReplaying && left !== undefined ? left.kept : here, keeping);
    this.#newest = left;
    this.#dueAt = child.handled + storeAfterBytes;
    this.#acked = child.handled;
    const place = left ?? { applied: here, kept: here, owed: [], answers: [] };
    options.store.put(child.id, options.facts, place, this.#placeOf);
    if (this.#isReplaying) this.#endReplay();
  }

  /** Whether the record under way had its effects in a former daemon. */
  get isKnown(): boolean {
    const { left, child } = this.#options;
    return left !== undefined && child.handled < left.applied.offset;
  }

  /** Called with each record that is not a delta, before it is in the log. */
  note(record: Buffer): void {
    const { child, journal } = this.#options;
    if (!this.#isHeldBack) this.#kept.note(record, { offset: child.handled, seq: journal.cursor });
  }

  /** Earlier output has other numbers, or unknown ones. */
  renumbered(): void {
    const { child, journal } = this.#options;
    this.#kept.moveTo({ offset: child.handled, seq: journal.cursor });
  }

  /** The next notification is told and was not written. */
  unwritten(): void {
    this.#options.keeper.inexact();
  }

  /** A record was handled. */
  handled(): void {
    const { child, journal } = this.#options;
    this.#seq = journal.cursor;
    if (this.#isReplaying) this.#endReplay();
    if (child.handled < this.#dueAt) return;
    this.#dueAt = child.handled + storeAfterBytes / 2;
    this.store();
    if (child.handled - this.#acked > keeping.maxBytes) this.#late ??= setTimeout(() => this.#go(), maxStoreMs).unref();
  }

  /** The child has changed what the next daemon needs. */
  renew(facts: object | undefined): void {
    if (facts !== undefined) this.#options.store.renew(this.#options.child.id, facts);
  }

  isOf(child: Child): boolean {
    return this.#options.child === child;
  }

  /** Has the place stored. */
  store(): void {
    this.#options.store.storeSoon();
  }

  /** The effects of the record under way, and of later ones, wait for {@link release}. */
  hold(): void {
    this.#heldAt ??= { offset: this.#options.child.handled, seq: this.#seq };
  }

  release(): void {
    this.#heldAt = undefined;
  }

  /** Records from the one under way on are not in the log; when they are, their places are not known any more. */
  reportsHeld(isHolding: boolean): void {
    this.#isHeldBack = isHolding;
    if (isHolding) {
      this.hold();
      return;
    }
    this.release();
    this.renumbered();
  }

  /** The child has ended, and everything that it wrote has its effects. */
  async end(): Promise<void> {
    clearTimeout(this.#late);
    await this.#options.store.delete(this.#options.child.id, this.#placeOf);
  }

  #ack(offset: number): void {
    if (offset <= this.#acked) return;
    this.#acked = offset;
    clearTimeout(this.#late);
    this.#late = undefined;
    this.#options.keeper.ack(offset);
  }

  /** The store does not answer. The next daemon finds that it lacks records. */
  #go(): void {
    const { child, journal } = this.#options;
    this.#late = undefined;
    if (child.state.kind === "exited" || child.handled - this.#acked <= keeping.maxBytes) return;
    const current = { offset: child.handled, seq: journal.cursor };
    this.#ack(this.#kept.place(current, current, performance.now()).offset);
  }

  #endReplay(): void {
    const { child, keeper, journal, onReplayed } = this.#options;
    if (child.handled < keeper.answer.everSent) return;
    this.#isReplaying = false;
    journal.replayed();
    onReplayed();
    this.store();
  }

  /** A former daemon may have told some of them. */
  #notSaid(owed: readonly OwedNotification[]): readonly OwedNotification[] {
    return owed.filter(({ method, params }) => !this.#options.journal.hasSaid(method, params));
  }

  #place(): Placing | undefined {
    const { child, keeper, journal, owed, answers } = this.#options;
    if (this.isKnown) return undefined;
    const seq = Math.max(this.#newest?.applied.seq ?? 0, child.isHandling ? this.#seq : journal.cursor);
    const current = { offset: child.handled, seq };
    const applied = this.#heldAt ?? current;
    const kept = this.#kept.place(current, applied, performance.now());
    const place = { applied, kept, owed: [...journal.unsaid, ...this.#notSaid(owed())], answers: answers() };
    const decided = [...this.#undecided, ...child.takeDecided()];
    this.#undecided = decided;
    if (isSame(place, this.#newest) && decided.length === 0) return undefined;
    this.#newest = place;
    const done = (isStored: boolean): void => {
      this.#dueAt = Math.max(this.#dueAt, kept.offset + storeAfterBytes);
      this.#ack(kept.offset);
      if (!isStored) return;
      this.#undecided = this.#undecided.filter((promptId) => !decided.includes(promptId));
      for (const promptId of decided) keeper.forget(promptId);
    };
    return { place, done };
  }
}

function isSame(place: ChildPlace, stored: ChildPlace | undefined): boolean {
  if (stored === undefined || place.owed.length + stored.owed.length > 0) return false;
  if (place.answers.length + stored.answers.length > 0) return false;
  return place.applied.offset === stored.applied.offset && place.kept.offset === stored.kept.offset;
}
