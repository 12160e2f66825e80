import { batch, computed, type ReadonlySignal, signal, untracked } from "@preact/signals";
import { type Delivery, type SessionInfo, WireError } from "../../client/browser.ts";
import { Authors } from "./authors.ts";
import type { Daemon, FeedGap, FeedListener, SessionNotification } from "./daemon.ts";
import { EntryRows } from "./entry-rows.ts";
import type { Item, NoteItem, RowGroup } from "./items.ts";
import { LiveRows } from "./live-rows.ts";
import { type PieceReader, pieceReader } from "./long-texts.ts";
import { note, whoOf } from "./notes.ts";
import { done, type Outcome, outcomeOf, wordsOf } from "./outcome.ts";
import type { Page } from "./page.ts";
import { isRecord, type PiValue } from "./pi-values.ts";
import { read } from "./reading.ts";
import { type Cell, cell, Rows } from "./rows.ts";
import { changeNotes, eventNote, noteOf } from "./session-notes.ts";

/** `changes`: tools that change files. `users`: messages of users. */
export type Filter = "all" | "changes" | "users";

export type ConversationState =
  | { readonly kind: "loading" }
  | { readonly kind: "ready" }
  | { readonly kind: "refused"; readonly words: string };

/** What was said in one session: its history, loaded backwards, and what happens now. */
export interface ConversationView {
  readonly state: ReadonlySignal<ConversationState>;
  /** Oldest first, as the filter says. */
  readonly groups: ReadonlySignal<readonly RowGroup[]>;
  readonly filter: ReadonlySignal<Filter>;
  setFilter(filter: Filter): void;
  /** Whether there is more before the first row. */
  readonly hasOlder: ReadonlySignal<boolean>;
  readonly isLoadingOlder: ReadonlySignal<boolean>;
  /** Loads the page before the first row. Several calls at the same time load one. */
  older(): Promise<Outcome>;
  /** The push as it was last told. */
  delivery(deliveryId: string): Delivery | undefined;
  /** How many rows came at the end since the page was opened: for "3 new". */
  readonly arrived: ReadonlySignal<number>;
  /** Whether live text was left out that has not come yet. */
  readonly isIncomplete: ReadonlySignal<boolean>;
  /** For a polite announcement: "answer complete, 3 tools". Empty at first. */
  readonly announcement: ReadonlySignal<string>;
  /** Loads everything again, after `refused`. */
  reload(): Promise<Outcome>;
}

export interface ConversationOptions {
  readonly daemon: Daemon;
  readonly page: Page;
  readonly sessionId: string;
  /** The session as the list has it. */
  readonly info: () => SessionInfo | undefined;
  /** Sends a lost prompt again. */
  readonly resend: (promptId: string) => Promise<Outcome>;
  /** Gets each notification of the session after its rows were made. */
  readonly onNotification: (notification: SessionNotification) => void;
  /** Notifications may have been missed. */
  readonly onMissed: () => void;
  /** The session was closed or deleted. */
  readonly onGone: () => void;
}

const pageLimit = 100;
/** Deltas of a block that come within this time are one. */
const coalesceMs = 16;
/** How many pages are read for one press, when they have nothing to show. */
const maxEmptyPages = 8;

interface Loaded {
  readonly rows: Rows;
  readonly entries: EntryRows;
  readonly live: LiveRows;
  readonly before: string | undefined;
}

export class Conversation implements ConversationView {
  readonly #options: ConversationOptions;
  readonly #read: PieceReader;
  readonly #authors: Authors;
  readonly #state = signal<ConversationState>({ kind: "loading" });
  readonly #rows = signal(new Rows());
  readonly #filter = signal<Filter>("all");
  readonly #before = signal<string | undefined>(undefined);
  readonly #isLoadingOlder = signal(false);
  #loadingOlder: Promise<Outcome> = Promise.resolve(done);
  readonly #arrived = signal(0);
  readonly #isIncomplete = signal(false);
  readonly #announcement = signal("");
  readonly groups: ReadonlySignal<readonly RowGroup[]>;
  readonly hasOlder: ReadonlySignal<boolean>;
  #loaded: Loaded | undefined;
  #leave: () => void = () => {};
  readonly #stopWatching: () => void;
  /** The last number of the log that was told. */
  #told = 0;
  #epoch: string | undefined;
  #asksForDeltas = true;
  #info: SessionInfo | undefined;
  #toolsOfRun = 0;
  /** Counts loads: an earlier one is ignored. */
  #loads = 0;
  #isClosed = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
    const { daemon, sessionId, page } = options;
    this.#info = untracked(options.info);
    this.#read = pieceReader(daemon, sessionId);
    this.#authors = new Authors(daemon.id);
    this.groups = computed(() => this.#filtered());
    this.hasOlder = computed(() => this.#before.value !== undefined);
    this.#stopWatching = page.onVisibility(() => this.#visibilityChanged());
    void this.reload();
  }

  get state(): ReadonlySignal<ConversationState> {
    return this.#state;
  }

  get filter(): ReadonlySignal<Filter> {
    return this.#filter;
  }

  get isLoadingOlder(): ReadonlySignal<boolean> {
    return this.#isLoadingOlder;
  }

  get arrived(): ReadonlySignal<number> {
    return this.#arrived;
  }

  get isIncomplete(): ReadonlySignal<boolean> {
    return this.#isIncomplete;
  }

  get announcement(): ReadonlySignal<string> {
    return this.#announcement;
  }

  setFilter(filter: Filter): void {
    this.#filter.value = filter;
  }

  async reload(): Promise<Outcome> {
    this.#loads += 1;
    const load = this.#loads;
    const isCurrent = (): boolean => this.#loads === load && !this.#isClosed;
    if (this.#loaded === undefined) this.#state.value = { kind: "loading" };
    const outcome = await outcomeOf(() => this.#load(isCurrent));
    if (!isCurrent()) return done;
    if (outcome.kind === "done") this.#state.value = { kind: "ready" };
    // What was loaded before stays.
    else if (this.#loaded === undefined) this.#state.value = outcome;
    return outcome;
  }

  older(): Promise<Outcome> {
    const loaded = this.#loaded;
    if (loaded === undefined) return Promise.resolve(done);
    if (!this.#isLoadingOlder.value) this.#loadingOlder = this.#loadOlder(loaded);
    return this.#loadingOlder;
  }

  delivery(deliveryId: string): Delivery | undefined {
    return this.#authors.delivery(deliveryId);
  }

  async #loadOlder(loaded: Loaded): Promise<Outcome> {
    this.#isLoadingOlder.value = true;
    const outcome = await outcomeOf(async () => {
      try {
        await this.#readOlder(loaded);
      } catch (error) {
        if (!(error instanceof WireError) || error.kind !== "transcript_changed") throw error;
        // The file was rewritten: the pages before are others now.
        await this.reload();
      }
      return undefined;
    });
    this.#isLoadingOlder.value = false;
    return outcome;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopWatching();
    this.#leave();
    this.#loaded?.live.close();
  }

  async #load(isCurrent: () => boolean): Promise<undefined> {
    const { daemon, sessionId } = this.#options;
    const page = await read(daemon, "transcript/page", { sessionId, limit: pageLimit });
    // Read after the page: the subscription begins at the page's cursor, so that no change is missed.
    const [prompts, deliveries] = await Promise.all([
      read(daemon, "prompt/list", { sessionId, limit: 500 }),
      read(daemon, "delivery/list", { sessionId, limit: 500 }),
    ]);
    if (!isCurrent()) return;
    this.#authors.forgetRows();
    this.#authors.prompts(prompts.prompts);
    for (const delivery of deliveries.deliveries) this.#authors.updated(delivery);
    const rows: Rows = new Rows((count) => {
      if (this.#rows.value === rows) this.#added(count);
    });
    const entries = new EntryRows({
      read: this.#read,
      who: (entryId, by) => this.#authors.who(entryId, by),
      delivery: (deliveryId) => this.#authors.delivery(deliveryId),
      add: (id, row) => this.#authors.add(id, row),
    });
    rows.append(entries.page(page.entries, page.cuts ?? [], true));
    const { cursor = 0, openAfter, epoch, before } = page;
    const live = new LiveRows({ rows, entries, read: this.#read, page: this.#options.page, cursor });
    this.#loaded?.live.close();
    this.#leave();
    const info = untracked(this.#options.info);
    if (openAfter === undefined && info?.runId === undefined) entries.loseCalls();
    if (info !== undefined) rows.append(this.#endNotes(info, page.entries.at(-1)));
    batch(() => {
      this.#loaded = { rows, entries, live, before };
      this.#rows.value = rows;
      this.#before.value = before;
      this.#isIncomplete.value = false;
    });
    this.#told = cursor;
    this.#epoch = epoch;
    this.#follow(openAfter ?? cursor);
  }

  /** What the session has to say of its end: why its pi has ended, and what was lost with it. */
  #endNotes(info: SessionInfo, last: PiValue | undefined): readonly Cell[] {
    const { daemon, resend } = this.#options;
    const writtenAt = Date.parse(String(last?.["timestamp"]));
    const lostPrompts = info.lostPrompts.filter(({ at }) => !(at < writtenAt));
    const { sessionId, cursor: seq, updatedAt: at } = info;
    const before = { ...info, state: "running" } as const;
    const notes = changeNotes({ sessionId, seq, at, session: info, lostPrompts }, before, { ownId: daemon.id, resend });
    return notes.map((item, index) => cell(`end-${index}`, item));
  }

  async #readOlder({ rows, entries }: Loaded): Promise<undefined> {
    const { daemon, sessionId } = this.#options;
    for (let count = 0; count < maxEmptyPages; count += 1) {
      const before = this.#before.value;
      if (before === undefined) return;
      const page = await read(daemon, "transcript/page", { sessionId, before, limit: pageLimit });
      if (this.#rows.value !== rows || this.#isClosed) return;
      const added = entries.page(page.entries, page.cuts ?? [], false);
      batch(() => {
        this.#before.value = page.before;
        rows.prepend(added);
      });
      if (added.length > 0) return;
    }
  }

  /** Subscribes from a number of the log on. Nothing starts pi. */
  #follow(after: number): void {
    const { daemon, sessionId, page } = this.#options;
    this.#leave();
    this.#asksForDeltas = !page.isHidden;
    const epoch = this.#epoch;
    const listener: FeedListener = {
      more: { deltas: this.#asksForDeltas, coalesceMs },
      begin: () => {},
      resume: () => this.#options.onMissed(),
      gap: (gap) => this.#gap(gap),
      receive: (notification) => this.#receive(notification),
      end: (end) => {
        if (end.kind === "session_closed") this.#options.onGone();
        else if (end.kind === "failed" && this.#loaded !== undefined) {
          const words = `This page gets no more of the session: ${wordsOf(end.error)}`;
          this.#note(this.#loaded.rows, note("session", words, page.now(), { tone: "error" }));
        }
      },
    };
    this.#leave = daemon.session(sessionId).listen(listener, { after, ...(epoch === undefined ? {} : { epoch }) });
  }

  #visibilityChanged(): void {
    const loaded = this.#loaded;
    if (loaded === undefined || this.#asksForDeltas === !this.#options.page.isHidden) return;
    // An answer that comes now is told from its beginning again.
    this.#follow(Math.min(this.#told, loaded.live.openAfter ?? this.#told));
  }

  #receive(notification: SessionNotification): void {
    const loaded = this.#loaded;
    if (loaded === undefined) return;
    const { seq } = notification.params;
    const isTold = seq <= this.#told;
    this.#told = Math.max(this.#told, seq);
    batch(() => {
      if (notification.name === "session/event") {
        const { event, at } = notification.params;
        // Of what was told, only an answer that is not complete is told again.
        if (!isTold || isOfOpen(event)) loaded.live.event(event, notification.params);
        if (!isTold) this.#eventNotes(loaded, event, at);
      } else if (!isTold) this.#notification(loaded, notification);
      else loaded.live.passed(seq);
      this.#isIncomplete.value = loaded.live.isIncomplete;
    });
    this.#options.onNotification(notification);
  }

  #added(count: number): void {
    this.#arrived.value += Math.max(0, count);
  }

  #eventNotes({ rows }: Loaded, event: PiValue, at: number): void {
    if (event["type"] === "tool_execution_start") this.#toolsOfRun += 1;
    const item = eventNote(event, at);
    if (item === undefined) return;
    const { last } = rows;
    const lastNote = last?.item.value.kind === "note" ? last.item.value : undefined;
    // The retry says what failed, and the end of a compaction follows its beginning.
    const isNext =
      (item.about === "retry" && lastNote?.about === "failure" && event["type"] === "auto_retry_start") ||
      (item.about === "compaction" && lastNote?.about === "compaction" && event["type"] === "compaction_end");
    if (isNext && last !== undefined) last.item.value = item;
    else this.#note(rows, item);
  }

  #note(rows: Rows, item: NoteItem): void {
    rows.append([cell(`note-${this.#told}-${rows.count}`, item)]);
  }

  #notification(loaded: Loaded, notification: Exclude<SessionNotification, { name: "session/event" }>): void {
    const { rows, live } = loaded;
    const { daemon, resend } = this.#options;
    live.passed(notification.params.seq);
    switch (notification.name) {
      case "run/started":
        this.#toolsOfRun = 0;
        return;
      case "run/ended":
        this.#runEnded(loaded, notification.params);
        return;
      case "prompt/updated":
        this.#authors.prompts([notification.params.prompt]);
        return;
      case "delivery/updated":
        this.#authors.updated(notification.params.delivery);
        return;
      case "session/updated":
        for (const item of changeNotes(notification.params, this.#info, { ownId: daemon.id, resend }))
          this.#note(rows, item);
        this.#info = notification.params.session;
        return;
      case "session/navigated":
        // Another branch is the conversation now.
        void this.reload();
        return;
      case "session/foreignWrite":
        if (notification.params.action === "reloaded") void this.reload();
        break;
      default:
    }
    const item = noteOf(notification, daemon.id);
    if (item !== undefined) this.#note(rows, item);
  }

  #runEnded(
    { rows, live }: Loaded,
    { outcome, by, at, error }: Extract<SessionNotification, { name: "run/ended" }>["params"],
  ): void {
    live.runEnded();
    const who = whoOf(by, this.#options.daemon.id);
    const { last } = rows;
    const lastNote = last?.item.value.kind === "note" ? last.item.value : undefined;
    if (outcome === "aborted") {
      const words = who.kind === "unknown" ? "The run was stopped." : "stopped the run.";
      const item = note("abort", words, at, { who });
      if (lastNote?.about === "abort" && last !== undefined) last.item.value = item;
      else this.#note(rows, item);
    } else if (outcome === "interrupted") {
      this.#note(rows, note("failure", "The run was interrupted: pi has ended.", at, { tone: "error" }));
    } else if (outcome === "failed" && lastNote?.about !== "failure" && lastNote?.about !== "retry") {
      this.#note(rows, note("failure", `The run failed: ${error ?? "no reason was given"}`, at, { tone: "error" }));
    }
    const tools = this.#toolsOfRun === 1 ? "1 tool" : `${this.#toolsOfRun} tools`;
    const words = {
      settled: "Answer complete",
      aborted: "Run stopped",
      failed: "Run failed",
      interrupted: "Run interrupted",
    };
    this.#announcement.value = `${words[outcome]}, ${tools}.`;
  }

  #gap(gap: FeedGap): void {
    const loaded = this.#loaded;
    if (loaded === undefined) return;
    const { from, to, reason, onlyDeltas } = gap;
    // Deltas that nobody asked for.
    if (reason === "unreported" && !this.#asksForDeltas) return;
    if (reason === "log_reset") {
      // The log is another one: the file has everything.
      void this.reload();
      return;
    }
    const isTold = to <= this.#told;
    this.#told = Math.max(this.#told, to);
    batch(() => {
      loaded.live.gap(to);
      this.#isIncomplete.value = loaded.live.isIncomplete;
      if (onlyDeltas === true || isTold) return;
      loaded.rows.append([cell(`gap-${from}-${to}`, this.#gapItem(gap))]);
    });
    if (onlyDeltas !== true) this.#options.onMissed();
  }

  #gapItem({ reason }: FeedGap): Item {
    const why = {
      not_retained: "it is no longer kept",
      daemon_restart: "the daemon was ended before it was stored",
      store_failed: "it could not be stored",
      slow_reader: "this page was too slow",
      log_reset: "the log is another one",
      unreported: "it did not arrive",
    }[reason];
    return {
      kind: "gap",
      at: this.#options.page.now(),
      words: `Something is missing here: ${why}.`,
      isReading: false,
      readAgain: () => this.reload(),
    };
  }

  #filtered(): readonly RowGroup[] {
    const rows = this.#rows.value;
    const filter = this.#filter.value;
    if (filter === "all") return rows.groups.value;
    return rows.groups.value.flatMap(({ id, rows: all }) => {
      const fitting = all.value.filter(({ item }) => fits(item.peek(), filter));
      return fitting.length === 0 ? [] : [{ id, rows: signal(fitting) }];
    });
  }
}

function fits(item: Item, filter: Filter): boolean {
  if (filter === "users") return item.kind === "user";
  return item.kind === "tool" && item.isChange;
}

/** Events of an answer that comes, and of tools that run. */
function isOfOpen(event: PiValue): boolean {
  const { type, message } = event;
  if (type === "message_start" || type === "message_end") return isRecord(message) && message["role"] === "assistant";
  return type === "message_update" || String(type).startsWith("tool_execution_");
}
