import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../extension/pi-types.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getSessionId" | "getEntries">;

/** An incremental fold over all entries of a session's file, on all branches. Each entry is read once. */
export class EntryFold<Sum> {
  readonly #empty: () => Sum;
  readonly #take: (sum: Sum, entry: SessionEntry) => void;
  #sum: Sum;
  #session = "";
  #seen = 0;
  #last: string | undefined;

  constructor(empty: () => Sum, take: (sum: Sum, entry: SessionEntry) => void) {
    this.#empty = empty;
    this.#take = take;
    this.#sum = empty();
  }

  of(session: Session): Sum {
    const entries = session.getEntries();
    const id = session.getSessionId();
    if (id !== this.#session || (this.#seen > 0 && entries[this.#seen - 1]?.id !== this.#last)) {
      this.#session = id;
      this.#seen = 0;
      this.#sum = this.#empty();
    }
    for (; this.#seen < entries.length; this.#seen += 1) this.#take(this.#sum, entries[this.#seen] as SessionEntry);
    this.#last = entries.at(-1)?.id;
    return this.#sum;
  }
}
