import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { fromLeaf } from "../extension/branch-view.ts";
import type { SessionEntry, SessionReader } from "../extension/pi-types.ts";

type FileReader = Pick<ExtensionContext["sessionManager"], "getSessionId" | "getEntries">;

/** An incremental fold over all entries of a session's file, on all branches. Each entry is read once. */
export class EntryFold<Sum, Session extends FileReader = FileReader> {
  readonly #empty: (session: Session) => Sum;
  readonly #take: (sum: Sum, entry: SessionEntry) => void;
  #sum: { readonly of: string; readonly is: Sum } | undefined;
  #seen = 0;
  #last: string | undefined;

  constructor(empty: (session: Session) => Sum, take: (sum: Sum, entry: SessionEntry) => void) {
    this.#empty = empty;
    this.#take = take;
  }

  of(session: Session): Sum {
    const entries = session.getEntries();
    const id = session.getSessionId();
    const isRead = this.#seen === 0 || entries[this.#seen - 1]?.id === this.#last;
    if (this.#sum?.of !== id || !isRead) {
      this.#seen = 0;
      this.#sum = { of: id, is: this.#empty(session) };
    }
    const { is } = this.#sum;
    for (; this.#seen < entries.length; this.#seen += 1) this.#take(is, entries[this.#seen] as SessionEntry);
    this.#last = entries.at(-1)?.id;
    return is;
  }
}

/** An incremental fold over the active branch, from the root on. Starts again when the session moves to another branch. */
export class BranchFold<Sum> {
  readonly #empty: () => Sum;
  readonly #take: (sum: Sum, entry: SessionEntry) => Sum;
  #sum: Sum;
  #leaf: string | undefined;

  constructor(empty: () => Sum, take: (sum: Sum, entry: SessionEntry) => Sum) {
    this.#empty = empty;
    this.#take = take;
    this.#sum = empty();
  }

  of(session: SessionReader): Sum {
    const added: SessionEntry[] = [];
    let isGrown = false;
    for (const entry of fromLeaf(session)) {
      isGrown = entry.id === this.#leaf;
      if (isGrown) break;
      added.push(entry);
    }
    if (!isGrown) this.#sum = this.#empty();
    this.#sum = added.reduceRight(this.#take, this.#sum);
    this.#leaf = session.getLeafEntry()?.id;
    return this.#sum;
  }

  /** Call when the session or the rules of the fold change. */
  reset(): void {
    this.#leaf = undefined;
  }
}
