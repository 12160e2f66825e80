import { batch, computed, type ReadonlySignal, signal } from "@preact/signals";
import { type Result, WireError } from "../../client/browser.ts";
import type { OutlineEntry } from "../../protocol/transcript-methods.ts";
import { BranchConversation } from "./branch-conversation.ts";
import type { ConversationView } from "./conversation.ts";
import type { Daemon, FeedListener, SessionNotification } from "./daemon.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import type { Page } from "./page.ts";
import { read } from "./reading.ts";
import { Rereading } from "./rereading.ts";
import { EntryTree, type TreeRow } from "./tree-graph.ts";

export type TreeState =
  | { readonly kind: "loading" }
  | { readonly kind: "ready" }
  | { readonly kind: "refused"; readonly words: string };

/** A branch other than the active one, opened for reading. */
export interface ReadBranch {
  readonly leafId: string;
  /** The entry from which it was opened. */
  readonly entryId: string;
  readonly conversation: ConversationView;
}

/** All branches of a session. */
export interface Tree {
  readonly state: ReadonlySignal<TreeState>;
  readonly tree: ReadonlySignal<EntryTree>;
  readonly rows: ReadonlySignal<readonly TreeRow[]>;
  /** Whether users' messages are never folded. */
  readonly showsUsers: ReadonlySignal<boolean>;
  showUsers(shows: boolean): void;
  /** Opens or folds a run of entries. */
  toggle(foldId: string): void;
  readonly chosen: ReadonlySignal<string | undefined>;
  choose(rowId: string | undefined): void;
  /** The session from which this one was made. Its id is undefined if the daemon does not have it. */
  readonly parent: ReadonlySignal<{ readonly sessionId?: string } | undefined>;
  /** Whether there are entries before those that were read. */
  readonly hasEarlier: ReadonlySignal<boolean>;
  readEarlier(): Promise<Outcome>;
  reload(): Promise<Outcome>;
  /** Undefined: none is read. */
  readonly branch: ReadonlySignal<ReadBranch | undefined>;
  /** Reads the branch of an entry. Nothing of the session changes. */
  openBranch(entryId: string): void;
  closeBranch(): void;
}

export interface SessionTreeOptions {
  readonly daemon: Daemon;
  readonly page: Page;
  readonly sessionId: string;
}

type Outline = Result<"transcript/outline">;

const pageLimit = 2_000;
/** How many of the newest are read after a change. */
const newestCount = 100;
/** More are read by a press. */
const maxAtOnce = 20_000;

export class SessionTree implements Tree {
  readonly #options: SessionTreeOptions;
  readonly #state = signal<TreeState>({ kind: "loading" });
  readonly #entries = signal<readonly OutlineEntry[]>([]);
  readonly #leafId = signal<string | null>(null);
  readonly #parent = signal<{ readonly sessionId?: string } | undefined>(undefined);
  readonly #before = signal<string | undefined>(undefined);
  readonly #opened = signal<ReadonlySet<string>>(new Set());
  readonly #showsUsers = signal(true);
  readonly #chosen = signal<string | undefined>(undefined);
  readonly #branch = signal<ReadBranch | undefined>(undefined);
  readonly tree: ReadonlySignal<EntryTree>;
  readonly rows: ReadonlySignal<readonly TreeRow[]>;
  readonly hasEarlier: ReadonlySignal<boolean>;
  readonly #stops: readonly (() => void)[];
  readonly #again: Rereading;
  #isLoading = false;
  /** Counts the readings from the end: results of an earlier one are ignored. */
  #loads = 0;
  /** The reading whose earlier entries are read now. */
  #readsBeforeOf: number | undefined;

  constructor(options: SessionTreeOptions) {
    this.#options = options;
    this.tree = computed(() => new EntryTree(this.#entries.value, this.#leafId.value));
    this.rows = computed(() =>
      this.tree.value.rows({ opened: this.#opened.value, showsUsers: this.#showsUsers.value }),
    );
    this.hasEarlier = computed(() => this.#before.value !== undefined);
    const { daemon, sessionId, page } = options;
    this.#again = new Rereading({
      page,
      read: () => this.#unlessRewritten(() => this.#readNewest()),
      isHeld: () => this.#isLoading,
    });
    const listener: FeedListener = {
      begin: () => {},
      resume: () => void this.reload(),
      gap: ({ onlyDeltas }) => {
        if (onlyDeltas !== true) this.#again.changed();
      },
      receive: (notification) => {
        if (notification.name === "session/foreignWrite") void this.reload();
        else if (isChange(notification)) this.#again.changed();
      },
      end: () => {},
    };
    this.#stops = [daemon.session(sessionId).listen(listener), this.#again.watch()];
    void this.reload();
  }

  get state(): ReadonlySignal<TreeState> {
    return this.#state;
  }

  get showsUsers(): ReadonlySignal<boolean> {
    return this.#showsUsers;
  }

  get chosen(): ReadonlySignal<string | undefined> {
    return this.#chosen;
  }

  get parent(): ReadonlySignal<{ readonly sessionId?: string } | undefined> {
    return this.#parent;
  }

  get branch(): ReadonlySignal<ReadBranch | undefined> {
    return this.#branch;
  }

  showUsers(shows: boolean): void {
    this.#showsUsers.value = shows;
  }

  toggle(foldId: string): void {
    const opened = new Set(this.#opened.value);
    if (!opened.delete(foldId)) opened.add(foldId);
    this.#opened.value = opened;
  }

  choose(rowId: string | undefined): void {
    this.#chosen.value = rowId;
  }

  openBranch(entryId: string): void {
    this.closeBranch();
    const leafId = this.tree.value.leafFrom(entryId);
    const { daemon, sessionId } = this.#options;
    this.#branch.value = { leafId, entryId, conversation: new BranchConversation({ daemon, sessionId, leafId }) };
  }

  closeBranch(): void {
    this.#branch.value = undefined;
  }

  async reload(): Promise<Outcome> {
    const outcome = await outcomeOf(() => this.#load());
    if (this.#again.isClosed) return done;
    this.#again.resume();
    if (outcome.kind === "done") this.#state.value = { kind: "ready" };
    // What was read before stays.
    else if (this.#state.peek().kind !== "ready") this.#state.value = outcome;
    return outcome;
  }

  async readEarlier(): Promise<Outcome> {
    const outcome = await outcomeOf(() => this.#unlessRewritten(() => this.#readBefore(maxAtOnce)));
    return outcome;
  }

  close(): void {
    this.#again.close();
    for (const stop of this.#stops) stop();
  }

  async #load(): Promise<undefined> {
    this.#loads += 1;
    const load = this.#loads;
    this.#isLoading = true;
    const page = await this.#page({}).finally(() => {
      if (this.#loads === load) this.#isLoading = false;
    });
    if (this.#again.isClosed || this.#loads !== load) return;
    batch(() => {
      this.#entries.value = page.entries;
      this.#leafId.value = page.leafId ?? null;
      this.#parent.value = page.parent;
      this.#before.value = page.before;
    });
    await this.#readBefore(maxAtOnce - page.entries.length);
  }

  /** Reads at least so many entries before those that are known, or all. */
  async #readBefore(count: number): Promise<undefined> {
    const load = this.#loads;
    if (this.#readsBeforeOf === load) return;
    this.#readsBeforeOf = load;
    try {
      await this.#pagesBefore(count, load);
    } finally {
      if (this.#readsBeforeOf === load) this.#readsBeforeOf = undefined;
    }
  }

  async #pagesBefore(count: number, load: number): Promise<void> {
    const pages: Outline[] = [];
    let before = this.#before.peek();
    for (let left = count; left > 0 && before !== undefined; ) {
      const page = await this.#page({ before });
      if (this.#again.isClosed || this.#loads !== load) return;
      pages.unshift(page);
      left -= Math.max(1, page.entries.length);
      ({ before } = page);
    }
    if (pages.length === 0) return;
    batch(() => {
      this.#entries.value = [...pages.flatMap(({ entries }) => entries), ...this.#entries.peek()];
      this.#before.value = before;
    });
  }

  #page({ before, limit = pageLimit }: { before?: string | undefined; limit?: number }): Promise<Outline> {
    const { daemon, sessionId } = this.#options;
    return read(daemon, "transcript/outline", { sessionId, limit, ...(before === undefined ? {} : { before }) });
  }

  async #readNewest(): Promise<undefined> {
    const load = this.#loads;
    const pages = [await this.#page({ limit: newestCount })];
    const tree = this.tree.peek();
    const isNew = ({ entryId }: OutlineEntry): boolean => !tree.has(entryId);
    // Until there is one that is known.
    for (let [first] = pages; first?.before !== undefined && first.entries.every(isNew); [first] = pages)
      pages.unshift(await this.#page({ before: first.before }));
    if (this.#again.isClosed || this.#loads !== load) return;
    // Another file has its place.
    if (tree.size > 0 && pages[0]?.entries.every(isNew) === true) return await this.#load();
    const added = pages.flatMap(({ entries }) => entries.filter(isNew));
    batch(() => {
      if (added.length > 0) this.#entries.value = [...this.#entries.peek(), ...added];
      this.#leafId.value = pages.at(-1)?.leafId ?? null;
    });
  }

  async #unlessRewritten(work: () => Promise<undefined>): Promise<undefined> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof WireError) || error.kind !== "transcript_changed") throw error;
      await this.#load();
    }
  }
}

/** Whether entries may have been written, or pi is on another branch. */
function isChange({ name, params }: SessionNotification): boolean {
  if (name !== "session/event") return /^(run|session)\//.test(name) || name === "delivery/updated";
  return ["message_end", "compaction_end", "entry_appended", "rpcd_entry"].includes(String(params.event.type));
}
