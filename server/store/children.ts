import type { NotificationName } from "../../protocol/notifications.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { Database } from "./database.ts";

/** A place in pi's output, and the number of the last notification before it. */
export interface LogPlace {
  readonly offset: number;
  readonly seq: number;
}

/** A notification that clients must get, and may not have got. */
export interface OwedNotification {
  readonly method: NotificationName;
  readonly params: Readonly<Record<string, unknown>>;
}

/** An answer to a question of pi. pi ignores a second one. */
export interface SentAnswer {
  readonly dialogId: string;
  readonly reply: Readonly<Record<string, unknown>>;
}

/** How far the daemon is with a child's output. */
export interface ChildPlace {
  /** All effects of the records before it are stored in the same transaction; those of later records are not. */
  readonly applied: LogPlace;
  /** The keeper still has everything from here on. */
  readonly kept: LogPlace;
  /** Of effects that are stored. */
  readonly owed: readonly OwedNotification[];
  /** Answers that pi may not have got. */
  readonly answers: readonly SentAnswer[];
}

/** A child, as a former daemon stored it. */
export interface StoredChild {
  readonly childId: string;
  /** What the next daemon needs to go on with it. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly place: ChildPlace;
}

/** A place that is being stored. */
export interface Placing {
  readonly place: ChildPlace;
  /** Called when it is stored, or will be as soon as the store works again. */
  readonly done: (isStored: boolean) => void;
}

/** Where a child is now. Undefined: as stored. */
type PlaceOf = () => Placing | undefined;

/** The children that outlive a daemon. Their places are stored with the effects of their records, in one transaction. */
export class ChildStore {
  readonly #database: Database;
  readonly #living = new Map<string, PlaceOf>();
  readonly #put;
  readonly #facts;
  readonly #move;
  readonly #delete;
  readonly #all;

  constructor(database: Database) {
    this.#database = database;
    this.#put = database.prepare(
      `INSERT INTO children (child_id, facts, place) VALUES (?, ?, ?)
       ON CONFLICT (child_id) DO UPDATE SET facts = excluded.facts`,
    );
    this.#facts = database.prepare("UPDATE children SET facts = ? WHERE child_id = ?");
    this.#move = database.prepare("UPDATE children SET place = ? WHERE child_id = ?");
    this.#delete = database.prepare("DELETE FROM children WHERE child_id = ?");
    this.#all = database.prepare("SELECT child_id AS childId, facts, place FROM children ORDER BY rowid");
    database.beforeCommit(() => {
      for (const childId of this.#living.keys()) this.#storePlace(childId);
    });
  }

  /** The children of former daemons, and of this one. */
  all(): readonly StoredChild[] {
    return this.#all.all().map(({ childId, facts, place }) => ({
      childId: String(childId),
      facts: parsed(facts) as StoredChild["facts"],
      place: parsed(place) as unknown as ChildPlace,
    }));
  }

  /**
   * Stores a child, also one of a former daemon. From now on each transaction has its place, as `placeOf` returns it at that
   * moment.
   */
  put(childId: string, facts: object, place: ChildPlace, placeOf: PlaceOf): void {
    const texts = [JSON.stringify(facts), JSON.stringify(place)];
    // The store logs and retries a failed write.
    void this.#database.keepUnsynced(`child ${childId}`, this.#put, childId, ...texts);
    this.#living.set(childId, placeOf);
  }

  /** Stores changed facts of a child, together with the changes of the record under way. */
  renew(childId: string, facts: object): void {
    void this.#database.keepUnsynced(`facts of ${childId}`, this.#facts, JSON.stringify(facts), childId);
  }

  /** Has a child's place stored soon, also if there is nothing else to store. */
  storeSoon(): void {
    this.#database.commitAlongside();
  }

  /**
   * Resolves when the child is deleted: it has ended, and everything that it wrote has its effects. `placeOf`: as given
   * to {@link put}; a child that was put again since then stays.
   */
  async delete(childId: string, placeOf?: PlaceOf): Promise<void> {
    if (this.#living.get(childId) !== placeOf) return;
    this.#living.delete(childId);
    await this.#database.keepUnsynced(`child ${childId}`, this.#delete, childId);
  }

  #storePlace(childId: string): void {
    const placing = this.#living.get(childId)?.();
    if (placing === undefined) return;
    const { place, done } = placing;
    // A store that fails must not stop pi.
    this.#database.alongside(`place of ${childId}`, this.#move, JSON.stringify(place), childId).then(
      () => done(true),
      () => done(false),
    );
  }
}

/** A damaged text must not stop the daemon's start: without its facts the child cannot go on. */
function parsed(text: unknown): object {
  try {
    const value: unknown = JSON.parse(String(text));
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
