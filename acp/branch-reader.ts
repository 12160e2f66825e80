import type { Result } from "../protocol/methods.ts";
import { isRecord } from "../protocol/objects.ts";
import type { TranscriptCut } from "../protocol/transcript-methods.ts";
import type { Port } from "./port.ts";
import { messageOf, type PiEntry } from "./updates/branch.ts";
import { firstWords } from "./updates/messages.ts";
import { wordOf } from "./updates/raw-value.ts";

type Page = Pick<Result<"transcript/page">, "entries" | "cuts" | "before">;

/** An entry without its long texts. */
export interface BranchEntry {
  readonly entry: PiEntry;
  /** Reads the entry with them. */
  readonly whole: () => Promise<PiEntry>;
}

export interface BranchReaderOptions {
  readonly port: Pick<Port, "call">;
  readonly sessionId: string;
  /** Counts what is held. The returned function ends that. */
  readonly hold: (value: object) => () => void;
  /** The entry after which the branch is wanted. Default: the whole branch. */
  readonly isLast?: ((entry: PiEntry) => boolean) | undefined;
}

/** A page, and how it is read again. */
interface Part {
  readonly from: { readonly before: string } | { readonly leafId: string };
  page: Page | undefined;
}

const pageSize = { limit: 1_000, maxBytes: 1_048_576 };
/** So many pages are kept, those of the beginning; later ones are read again when they are told. */
const maxKeptPages = 8;
const pieceBytes = 4_194_304;
/** Longer entries stay without their long texts, as they did in pi's own answers. */
const maxWholeBytes = 64 * 1024 * 1024;

/**
 * The active branch of a session. It is read from its end, which is the way of the protocol, and told from its beginning:
 * of a long one the places of its pages are kept, and no entries.
 */
export class BranchReader {
  readonly #options: BranchReaderOptions;
  /** From the end backwards. */
  readonly #parts: Part[] = [];
  readonly #release: (() => void)[] = [];
  /** The wanted entries come after it. */
  #lastId: string | undefined;
  #newest: PiEntry | undefined;
  #newestTurn: PiEntry | undefined;
  #name: unknown;
  #firstWords: string | undefined;

  private constructor(options: BranchReaderOptions) {
    this.#options = options;
  }

  /** Reads where the pages are. Rejects with `WireError`. */
  static async read(options: BranchReaderOptions): Promise<BranchReader> {
    const reader = new BranchReader(options);
    try {
      await reader.#readPlaces();
      return reader;
    } catch (error) {
      reader.close();
      throw error;
    }
  }

  /** Whether there is the entry after which the branch is wanted. */
  get isLastFound(): boolean {
    return this.#lastId !== undefined;
  }

  get newest(): PiEntry | undefined {
    return this.#newest;
  }

  /** The last message of a user or the model. */
  get newestTurn(): PiEntry | undefined {
    return this.#newestTurn;
  }

  /** The last name on the branch, else the first words. */
  get title(): string | undefined {
    return typeof this.#name === "string" && this.#name !== "" ? this.#name : this.#firstWords;
  }

  /** The wanted entries, in their order. To be called once. */
  async *entries(): AsyncGenerator<BranchEntry, void> {
    try {
      for (let part = this.#parts.pop(); part !== undefined; part = this.#parts.pop()) {
        const { page } = part;
        part.page = undefined;
        for (const each of await this.#linked(page ?? (await this.#page(part.from)))) {
          this.#lastId = wordOf(each.entry["id"]);
          yield each;
        }
        if (page !== undefined) this.#release.pop()?.();
      }
    } finally {
      this.close();
    }
  }

  /** Keeps nothing more. */
  close(): void {
    this.#parts.length = 0;
    for (const release of this.#release.splice(0)) release();
  }

  async #readPlaces(): Promise<void> {
    let from: Part["from"] | undefined;
    do {
      const page = await this.#page(from);
      const { entries, before, leafId } = page;
      if (entries.length > 0) this.#keep({ from: from ?? { leafId: leafId ?? "" }, page });
      if (entries.toReversed().some((entry) => this.#isFound(entry)) || before === undefined) return;
      from = { before };
    } while (from !== undefined);
  }

  #keep(part: Part): void {
    this.#parts.push(part);
    this.#release.push(this.#options.hold(part.page?.entries ?? []));
    const tooMany = this.#parts.at(-1 - maxKeptPages);
    if (tooMany === undefined) return;
    tooMany.page = undefined;
    this.#release.shift()?.();
  }

  /** Notes what an entry says of the branch, from the end backwards. Returns whether it is the last unwanted one. */
  #isFound(entry: PiEntry): boolean {
    if (this.#options.isLast?.(entry) === true) {
      this.#lastId = wordOf(entry["id"]);
      return true;
    }
    const message = messageOf(entry);
    const { role } = message ?? {};
    this.#newest ??= entry;
    if (role === "user" || role === "assistant") this.#newestTurn ??= entry;
    if (role === "user" && message !== undefined) this.#firstWords = firstWords(message);
    if (entry["type"] === "session_info") this.#name ??= entry["name"] ?? "";
    return false;
  }

  /**
   * The entries of a page after those that were told. A page that is read again can have more entries than at first, or
   * fewer: then those before it are read too.
   */
  async #linked(page: Page): Promise<BranchEntry[]> {
    const known = this.#lastId;
    let entries = this.#entriesOf(page);
    for (let { before } = page; ; ) {
      const at = known === undefined ? -1 : entries.findLastIndex(({ entry }) => entry["id"] === known);
      if (at !== -1) return entries.slice(at + 1);
      const first = entries[0]?.entry;
      if (before === undefined || (known !== undefined && first?.["parentId"] === known)) return entries;
      const earlier = await this.#page({ before });
      entries = [...this.#entriesOf(earlier), ...entries];
      before = earlier.before;
    }
  }

  #entriesOf({ entries, cuts = [] }: Page): BranchEntry[] {
    const byEntry = Map.groupBy(cuts, ({ entryId }) => entryId);
    return entries.map((entry) => {
      const own = byEntry.get(entry.id);
      return { entry, whole: async () => (own === undefined ? entry : await this.#whole(entry, own)) };
    });
  }

  async #whole(entry: PiEntry, cuts: readonly TranscriptCut[]): Promise<PiEntry> {
    if (cuts.reduce((sum, { bytes }) => sum + bytes, 0) > maxWholeBytes) return entry;
    let whole: unknown = entry;
    // A value that was left out has all that is in it.
    const outer = cuts.filter(({ path }) => !cuts.some((other) => path.startsWith(`${other.path}/`)));
    for (const cut of outer) {
      const text = await this.#text(cut);
      whole = withValue(whole, tokensOf(cut.path), (former) => (typeof former === "string" ? text : parsed(text)));
    }
    return isRecord(whole) ? whole : entry;
  }

  async #text({ entryId, path, place }: TranscriptCut): Promise<string> {
    const { port, sessionId } = this.#options;
    const value = { sessionId, entryId, path, length: pieceBytes, ...(place !== undefined && { place }) };
    const parts: string[] = [];
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const { text, next }: Result<"transcript/entry"> = await port.call("transcript/entry", { ...value, offset });
      parts.push(text);
      offset = next;
    }
    return parts.join("");
  }

  #page(from: Part["from"] | undefined): Promise<Result<"transcript/page">> {
    const { port, sessionId } = this.#options;
    return port.call("transcript/page", { sessionId, ...pageSize, ...from });
  }
}

/** The tokens of a JSON pointer. */
function tokensOf(path: string): string[] {
  return path
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** A copy of a value in which the one at a place is another. */
function withValue(value: unknown, [token, ...rest]: readonly string[], change: (former: unknown) => unknown): unknown {
  if (token === undefined) return change(value);
  if (Array.isArray(value)) {
    return value.map((each, index) => (String(index) === token ? withValue(each, rest, change) : each));
  }
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, key === token ? withValue(each, rest, change) : each]),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
