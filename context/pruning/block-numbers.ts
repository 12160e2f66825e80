import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../extension/pi-types.ts";
import { blockNumbersIn } from "./block-entries.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getSessionId" | "getEntries">;

/** A larger gap was not written by this extension; the number is ignored. */
const longestStep = 100_000;

/** The highest block number over all branches of the file: a fold over its append-only entries. */
export class BlockNumbers {
  #session = "";
  #seen = 0;
  #last: string | undefined;
  #highest = 0;

  highest(session: Session): number {
    const entries = session.getEntries();
    const isSame =
      session.getSessionId() === this.#session && (this.#seen === 0 || entries[this.#seen - 1]?.id === this.#last);
    if (!isSame) {
      this.#session = session.getSessionId();
      this.#seen = 0;
      this.#highest = 0;
    }
    for (; this.#seen < entries.length; this.#seen += 1) {
      for (const number of blockNumbersIn(entries[this.#seen] as SessionEntry)) {
        if (number > this.#highest && number <= this.#highest + longestStep) this.#highest = number;
      }
    }
    this.#last = entries.at(-1)?.id;
    return this.#highest;
  }
}
