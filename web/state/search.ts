import { batch, type ReadonlySignal, signal, untracked } from "@preact/signals";
import type { Params } from "../../client/browser.ts";
import type { SearchHit, Unsearched } from "../../protocol/transcript-methods.ts";
import type { Daemon } from "./daemon.ts";
import { type Excerpt, excerptAround, excerptOf, type HitKind, literal, textsOf } from "./finding.ts";
import type { Row } from "./items.ts";
import type { OpenSession } from "./open-session.ts";
import { outcomeOf } from "./outcome.ts";
import { read } from "./reading.ts";

/** `session`: the open one. */
export type Scope = "session" | "all";

/** A message that has the text. */
export interface Hit extends Excerpt {
  /** Identifies it in the list. */
  readonly key: string;
  readonly sessionId: string;
  readonly kind: HitKind;
  /** Unix time in milliseconds. Undefined: unknown. */
  readonly at: number | undefined;
  /** Undefined: pi has not written it, and it is loaded. */
  readonly entryId: string | undefined;
  /** The row of the open conversation in which it was found. */
  readonly rowId?: string;
  readonly isOnOtherBranch: boolean;
}

/** `cut`: there is more to search. `full`: the page keeps no more hits. */
export type SearchState =
  | { readonly kind: "empty" }
  | { readonly kind: "looking" }
  | { readonly kind: "ended" }
  | { readonly kind: "cut" }
  | { readonly kind: "full" }
  | { readonly kind: "refused"; readonly words: string };

/** How many sessions the search is about, and how many of these are searched. */
export interface Progress {
  readonly sessions: number;
  readonly done: number;
}

/** A session whose conversation is open. */
export type Searched = Pick<OpenSession, "sessionId" | "conversation">;

/** Finds a text in the conversation that is open, or in all. Starts no pi. */
export interface Search {
  readonly query: ReadonlySignal<string>;
  readonly scope: ReadonlySignal<Scope>;
  /** The session that was open when the search was opened. */
  readonly open: ReadonlySignal<Searched | undefined>;
  readonly state: ReadonlySignal<SearchState>;
  /** The newest first. */
  readonly hits: ReadonlySignal<readonly Hit[]>;
  readonly progress: ReadonlySignal<Progress>;
  /** What the daemon has left out. */
  readonly unsearched: ReadonlySignal<readonly Unsearched[]>;
  /** The search is shown again, perhaps with another session open. */
  show(open: Searched | undefined): void;
  /** Searches when no more is typed for a moment. */
  write(query: string): void;
  setScope(scope: Scope): void;
  /** Goes on after a cut or a refusal. */
  more(): Promise<void>;
  /** Ends the search that runs. */
  stop(): void;
  /** The titles of sessions. */
  titleOf(sessionId: string): string;
}

interface SearchOptions {
  readonly daemon: Daemon;
  readonly titleOf: (sessionId: string) => string;
}

/** The time after a key before the daemon is asked. */
const typingMs = 200;
/** So many hits are fetched for one press, in so many calls: a call reads up to 128 MiB. */
const hitsAtOnce = 50;
const callsAtOnce = 8;
const maxHits = 1_000;
/** So long the page looks in what it has loaded, before it does other work. */
const sliceMs = 8;

export class TranscriptSearch implements Search {
  readonly #options: SearchOptions;
  readonly #query = signal("");
  readonly #scope = signal<Scope>("session");
  readonly #open = signal<Searched | undefined>(undefined);
  readonly #state = signal<SearchState>({ kind: "empty" });
  readonly #hits = signal<readonly Hit[]>([]);
  readonly #progress = signal<Progress>({ sessions: 0, done: 0 });
  readonly #unsearched = signal<readonly Unsearched[]>([]);
  #before: string | undefined;
  /** Hits that are only in what the page has. */
  #unwritten: readonly Hit[] = [];
  #found: readonly Hit[] = [];
  #isAnswered = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #running = new AbortController();
  /** Ends the look in what is loaded. */
  #looking = new AbortController();

  constructor(options: SearchOptions) {
    this.#options = options;
  }

  get query(): ReadonlySignal<string> {
    return this.#query;
  }

  get scope(): ReadonlySignal<Scope> {
    return this.#scope;
  }

  get open(): ReadonlySignal<Searched | undefined> {
    return this.#open;
  }

  get state(): ReadonlySignal<SearchState> {
    return this.#state;
  }

  get hits(): ReadonlySignal<readonly Hit[]> {
    return this.#hits;
  }

  get progress(): ReadonlySignal<Progress> {
    return this.#progress;
  }

  get unsearched(): ReadonlySignal<readonly Unsearched[]> {
    return this.#unsearched;
  }

  show(open: Searched | undefined): void {
    const isOther = this.#open.peek()?.sessionId !== open?.sessionId;
    this.#open.value = open;
    if (open === undefined) this.#scope.value = "all";
    else if (isOther) this.#scope.value = "session";
    // What was found may be old.
    this.#begin(0);
  }

  write(query: string): void {
    this.#query.value = query;
    this.#begin(typingMs);
  }

  setScope(scope: Scope): void {
    this.#scope.value = scope;
    this.#begin(0);
  }

  async more(): Promise<void> {
    this.#running.abort();
    this.#running = new AbortController();
    await this.#fetch(this.#running.signal);
  }

  stop(): void {
    this.#running.abort();
    this.#looking.abort();
    clearTimeout(this.#timer);
  }

  titleOf(sessionId: string): string {
    return this.#options.titleOf(sessionId);
  }

  #begin(afterMs: number): void {
    this.stop();
    batch(() => {
      this.#before = undefined;
      this.#found = [];
      this.#isAnswered = false;
      this.#unwritten = [];
      this.#unsearched.value = [];
      this.#progress.value = { sessions: 0, done: 0 };
      const isEmpty = this.#query.value.trim() === "";
      this.#hits.value = [];
      this.#state.value = { kind: isEmpty ? "empty" : "looking" };
    });
    if (this.#state.value.kind !== "looking") return;
    this.#looking = new AbortController();
    void untracked(() => this.#lookInLoaded(this.#looking.signal));
    this.#timer = setTimeout(() => void this.more(), afterMs);
  }

  /** Looks in what the open conversation has loaded, the newest first. */
  async #lookInLoaded(signal: AbortSignal): Promise<void> {
    const open = this.#open.value;
    if (open === undefined || this.#scope.value === "all") return;
    const pattern = literal(this.#query.value);
    const hits: Hit[] = [];
    let until = performance.now() + sliceMs;
    for (const row of open.conversation.groups.value.flatMap((group) => group.rows.value).toReversed()) {
      if (performance.now() >= until) {
        this.#addLoaded(hits);
        await new Promise((resolve) => setTimeout(resolve));
        if (signal.aborted) return;
        until = performance.now() + sliceMs;
      }
      const hit = hitIn(row, open.sessionId, pattern);
      if (hit !== undefined) hits.push(hit);
      if (hits.length === hitsAtOnce) break;
    }
    this.#addLoaded(hits);
  }

  /** Shows them until the daemon has answered, and then only those that pi had not written. */
  #addLoaded(hits: readonly Hit[]): void {
    this.#unwritten = hits.filter(({ entryId }) => entryId === undefined);
    if (this.#isAnswered) this.#add([]);
    else this.#hits.value = [...hits];
  }

  async #fetch(signal: AbortSignal): Promise<void> {
    this.#state.value = { kind: "looking" };
    const wanted = this.#found.length + hitsAtOnce;
    for (let calls = 0; calls < callsAtOnce; calls += 1) {
      const outcome = await outcomeOf(() => read(this.#options.daemon, "transcript/search", this.#params(), signal));
      if (signal.aborted) return;
      if (outcome.kind === "refused") {
        this.#state.value = outcome;
        return;
      }
      const { hits, before, sessions, sessionsLeft, unsearched = [] } = outcome.value;
      this.#before = before;
      batch(() => {
        this.#add(hits);
        this.#progress.value = { sessions, done: sessions - sessionsLeft };
        this.#unsearched.value = [...this.#unsearched.value, ...unsearched];
        if (before === undefined) this.#state.value = { kind: "ended" };
        else if (this.#found.length >= maxHits) this.#state.value = { kind: "full" };
      });
      if (this.#state.value.kind !== "looking") return;
      if (this.#found.length >= wanted) break;
    }
    this.#state.value = { kind: "cut" };
  }

  #params(): Params<"transcript/search"> {
    const open = this.#open.value;
    return {
      query: this.#query.value,
      limit: hitsAtOnce,
      ...(this.#scope.value === "session" && open !== undefined && { sessionId: open.sessionId }),
      ...(this.#before !== undefined && { before: this.#before }),
    };
  }

  /** Hits in what pi had not written stay, unless the file has them by now. */
  #add(hits: readonly SearchHit[]): void {
    this.#isAnswered = true;
    const added = hits.map(hitOf);
    this.#found = [...this.#found, ...added].slice(0, maxHits);
    const known = new Set(this.#found.map(textKey));
    this.#hits.value = [...this.#unwritten.filter((hit) => !known.has(textKey(hit))), ...this.#found];
  }
}

function hitOf(hit: SearchHit): Hit {
  const { sessionId, entryId, kind, at, isOnOtherBranch = false } = hit;
  return { ...excerptOf(hit), key: `${sessionId} ${entryId}`, sessionId, entryId, kind, at, isOnOtherBranch };
}

function hitIn({ id: rowId, item }: Row, sessionId: string, pattern: RegExp): Hit | undefined {
  const { entryId, at } = item.value;
  for (const [kind, text] of textsOf(item.value)) {
    const found = pattern.exec(text);
    if (found === null) continue;
    const excerpt = excerptAround(text, found.index, found[0].length);
    return { ...excerpt, key: `row ${rowId}`, sessionId, kind, at, entryId, rowId, isOnOtherBranch: false };
  }
  return undefined;
}

function textKey({ before, match, after }: Hit): string {
  return JSON.stringify([before, match, after]);
}
