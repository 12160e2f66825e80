import { batch, computed, type ReadonlySignal, signal } from "@preact/signals";
import type { ConversationState, ConversationView, Filter } from "./conversation.ts";
import type { Daemon } from "./daemon.ts";
import { EntryRows } from "./entry-rows.ts";
import type { RowGroup } from "./items.ts";
import { type PieceReader, pieceReader } from "./long-texts.ts";
import { unknownWho } from "./notes.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import { read } from "./reading.ts";
import { Rows } from "./rows.ts";

export interface BranchConversationOptions {
  readonly daemon: Daemon;
  readonly sessionId: string;
  /** The last entry of the branch. */
  readonly leafId: string;
}

const pageLimit = 100;
/** How many pages are read for one press, when they have nothing to show. */
const maxEmptyPages = 8;

/** What was said on a branch up to an entry. It does not change: what is written later is another branch or after its end. */
export class BranchConversation implements ConversationView {
  readonly #options: BranchConversationOptions;
  readonly #read: PieceReader;
  readonly #state = signal<ConversationState>({ kind: "loading" });
  readonly #rows = signal(new Rows());
  readonly #before = signal<string | undefined>(undefined);
  readonly #isLoadingOlder = signal(false);
  #entries: EntryRows;
  #loadingOlder: Promise<Outcome> = Promise.resolve(done);
  readonly groups: ReadonlySignal<readonly RowGroup[]>;
  readonly hasOlder: ReadonlySignal<boolean>;
  readonly filter: ReadonlySignal<Filter> = signal("all");
  readonly arrived = signal(0);
  readonly isIncomplete = signal(false);
  readonly announcement = signal("");

  constructor(options: BranchConversationOptions) {
    this.#options = options;
    this.#read = pieceReader(options.daemon, options.sessionId);
    this.#entries = this.#newRows();
    this.groups = computed(() => this.#rows.value.groups.value);
    this.hasOlder = computed(() => this.#before.value !== undefined);
    void this.reload();
  }

  get state(): ReadonlySignal<ConversationState> {
    return this.#state;
  }

  get isLoadingOlder(): ReadonlySignal<boolean> {
    return this.#isLoadingOlder;
  }

  setFilter(): void {}

  delivery(): undefined {}

  async reload(): Promise<Outcome> {
    this.#state.value = { kind: "loading" };
    const { leafId } = this.#options;
    const outcome = await outcomeOf(async () => {
      this.#entries = this.#newRows();
      this.#rows.value = new Rows();
      this.#before.value = undefined;
      return await this.#page({ leafId });
    });
    this.#state.value = outcome.kind === "done" ? { kind: "ready" } : outcome;
    return outcome.kind === "done" ? done : outcome;
  }

  older(): Promise<Outcome> {
    if (!this.#isLoadingOlder.value) this.#loadingOlder = this.#loadOlder();
    return this.#loadingOlder;
  }

  async #loadOlder(): Promise<Outcome> {
    this.#isLoadingOlder.value = true;
    const outcome = await outcomeOf(async () => {
      for (let count = 0; count < maxEmptyPages && this.#before.value !== undefined; count += 1)
        if (await this.#page({ before: this.#before.value })) break;
      return undefined;
    });
    this.#isLoadingOlder.value = false;
    return outcome;
  }

  /** Reads a page before what is there. Returns whether it has something to show. */
  async #page(place: { readonly leafId: string } | { readonly before: string }): Promise<boolean> {
    const { daemon, sessionId } = this.#options;
    const entries = this.#entries;
    const page = await read(daemon, "transcript/page", { sessionId, limit: pageLimit, ...place });
    if (entries !== this.#entries) return true;
    const rows = entries.page(page.entries, page.cuts ?? [], false);
    batch(() => {
      this.#before.value = page.before;
      if ("leafId" in place) this.#rows.peek().append(rows);
      else this.#rows.peek().prepend(rows);
    });
    return rows.length > 0;
  }

  #newRows(): EntryRows {
    return new EntryRows({
      read: this.#read,
      who: () => unknownWho,
      delivery: () => undefined,
      add: () => {},
    });
  }
}
