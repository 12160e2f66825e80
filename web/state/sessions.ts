import { batch, computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import type { Params, RunOutcome, SessionInfo } from "../../client/browser.ts";
import type { StoredSessionInfo } from "../../protocol/stored-session.ts";
import type { Daemon } from "./daemon.ts";
import { done, type Outcome, outcomeOf } from "./outcome.ts";
import type { TabStorage } from "./page.ts";
import { act, read } from "./reading.ts";
import { SeenRuns } from "./seen.ts";
import { exitWords } from "./session-notes.ts";

/** The groups of the list, in its order. `finished`: a run ended while the session was not shown. */
export const groupNames = ["waits", "failed", "runs", "finished", "awake", "asleep"] as const;
export type GroupName = (typeof groupNames)[number];

export interface SessionRow {
  readonly sessionId: string;
  readonly group: GroupName;
  /** Its name, else its directory's. Foreign text. */
  readonly title: string;
  /** For `failed`: what went wrong, in a sentence. */
  readonly why?: string;
  readonly info: SessionInfo;
}

export interface SessionGroup {
  readonly name: GroupName;
  /** Newest first. */
  readonly rows: readonly SessionRow[];
}

export type ListState =
  | { readonly kind: "loading" }
  | { readonly kind: "loaded" }
  | { readonly kind: "refused"; readonly words: string };

export interface NewSession {
  /** An absolute path. */
  readonly directory: string;
  readonly profile?: string;
  /** `provider/id`, as pi's command line takes it. */
  readonly model?: string;
  readonly name?: string;
  readonly firstPrompt?: string;
}

/** pi's own sessions that the daemon does not have yet. */
export interface StoredSessions {
  readonly state: ReadonlySignal<ListState>;
  readonly sessions: ReadonlySignal<readonly StoredSessionInfo[]>;
  readonly hasMore: ReadonlySignal<boolean>;
  /** Loads the first page, or the next one. */
  more(): Promise<Outcome>;
}

/** The daemon's sessions. The list follows every change. */
export interface Sessions {
  readonly state: ReadonlySignal<ListState>;
  /** Groups with at least one row that fits the filter. */
  readonly groups: ReadonlySignal<readonly SessionGroup[]>;
  /** All of them, whatever the filter, the newest first. */
  readonly rows: ReadonlySignal<readonly SessionRow[]>;
  /** How many there are without the filter. */
  readonly count: ReadonlySignal<number>;
  /** Words that name, label, directory or model of a row must contain. */
  readonly filter: Signal<string>;
  /** Directories of known sessions, the newest first, to offer for a new one. */
  readonly directories: ReadonlySignal<readonly string[]>;
  find(sessionId: string): SessionRow | undefined;
  /** Resolves with the new session's id. If its first prompt is refused, the words say so and the session stays. */
  create(session: NewSession): Promise<Outcome<string>>;
  readonly stored: StoredSessions;
  /** Opens one of pi's stored sessions; starts its pi. Resolves with the session's id. */
  openStored(file: string): Promise<Outcome<string>>;
  /** Starts the session's pi if it sleeps: pi writes the name. */
  rename(sessionId: string, name: string): Promise<Outcome>;
  hibernate(sessionId: string): Promise<Outcome>;
  /** Ends the session's pi and forgets the session. Its file stays. */
  close(sessionId: string): Promise<Outcome>;
  /** Deletes the session and its file permanently. */
  remove(sessionId: string): Promise<Outcome>;
}

/** The params of `session/create` for what a person entered. Empty fields are absent. */
function creationOf({ directory, profile, model, name }: NewSession): Params<"session/create"> {
  const given = { profile, model, name };
  const entries = Object.entries(given).filter(([, value]) => value !== undefined && value !== "");
  return { cwd: directory, ...Object.fromEntries(entries) };
}

export class AllSessions implements Sessions {
  readonly #daemon: Daemon;
  readonly #state = signal<ListState>({ kind: "loading" });
  readonly #infos = signal<ReadonlyMap<string, SessionInfo>>(new Map());
  readonly #seen: SeenRuns;
  readonly #runListeners = new Set<(session: SessionInfo) => void>();
  /** Until when the lost prompts of a session were seen (Unix time in milliseconds). */
  readonly #seenAt = signal<ReadonlyMap<string, number>>(new Map());
  /** The session that is looked at. */
  readonly #looked = signal<string | undefined>(undefined);
  readonly filter = signal("");
  readonly groups: ReadonlySignal<readonly SessionGroup[]>;
  readonly count: ReadonlySignal<number>;
  readonly directories: ReadonlySignal<readonly string[]>;
  readonly stored: StoredSessions;
  readonly rows: ReadonlySignal<readonly SessionRow[]>;
  /** The rows of the last time: what has not changed is the same object. */
  #former = new Map<string, SessionRow>();
  /** What came while the list was being read. */
  #changedMeanwhile: Map<string, SessionInfo | undefined> | undefined;

  constructor(daemon: Daemon, storage: TabStorage) {
    this.#daemon = daemon;
    this.#seen = new SeenRuns(storage);
    this.rows = computed(() => this.#sorted());
    this.groups = computed(() => grouped(this.rows.value, this.filter.value));
    this.count = computed(() => this.#infos.value.size);
    this.directories = computed(() => [...new Set(this.rows.value.map(({ info }) => info.cwd))]);
    this.stored = new StoredList(daemon);
  }

  get state(): ReadonlySignal<ListState> {
    return this.#state;
  }

  /** Follows the sessions from now on. */
  async start(): Promise<void> {
    const daemon = this.#daemon;
    daemon.onConnection(({ kind }) => {
      if (kind === "connected") void this.#refresh();
    });
    await daemon.onSessionChanged(({ sessionId, session }) => this.#changed(sessionId, session));
    await this.#refresh();
  }

  find(sessionId: string): SessionRow | undefined {
    return this.rows.value.find((row) => row.sessionId === sessionId);
  }

  info(sessionId: string): SessionInfo | undefined {
    return this.#infos.value.get(sessionId);
  }

  /** Says which session is shown: what happened in it is seen. Undefined: none is, or the page is hidden. */
  look(sessionId: string | undefined, now: number): void {
    const former = this.#looked.peek();
    this.#looked.value = sessionId;
    for (const id of new Set([former, sessionId])) {
      if (id === undefined) continue;
      this.#see(id);
      this.#seenAt.value = new Map(this.#seenAt.peek()).set(id, now);
    }
  }

  /** Calls `listener` with each session whose run has ended since the list was read. */
  onRunEnded(listener: (session: SessionInfo) => void): void {
    this.#runListeners.add(listener);
  }

  /** Deletes what the tab keeps about them. */
  forget(): void {
    this.#seen.forget();
  }

  async create(session: NewSession): Promise<Outcome<string>> {
    const created = await outcomeOf(() => act(this.#daemon, "session/create", creationOf(session)));
    if (created.kind === "refused") return created;
    const { sessionId } = created.value;
    this.#changed(sessionId, created.value);
    const text = session.firstPrompt ?? "";
    if (text.trim() === "") return { kind: "done", value: sessionId };
    const prompted = await outcomeOf(() => act(this.#daemon, "session/prompt", { sessionId, text }));
    if (prompted.kind === "done") return { kind: "done", value: sessionId };
    return { kind: "refused", words: `The session was created, but its first message was refused: ${prompted.words}` };
  }

  async openStored(file: string): Promise<Outcome<string>> {
    const opened = await outcomeOf(() => act(this.#daemon, "session/open", { file }));
    if (opened.kind === "refused") return opened;
    this.#changed(opened.value.sessionId, opened.value);
    return { kind: "done", value: opened.value.sessionId };
  }

  rename(sessionId: string, name: string): Promise<Outcome> {
    return this.#act(() => act(this.#daemon, "session/rename", { sessionId, name }));
  }

  hibernate(sessionId: string): Promise<Outcome> {
    return this.#act(() => act(this.#daemon, "session/hibernate", { sessionId }));
  }

  close(sessionId: string): Promise<Outcome> {
    return this.#act(() => act(this.#daemon, "session/close", { sessionId }));
  }

  remove(sessionId: string): Promise<Outcome> {
    return this.#act(() => act(this.#daemon, "session/delete", { sessionId, confirm: true }));
  }

  async #act(call: () => Promise<unknown>): Promise<Outcome> {
    const outcome = await outcomeOf(call);
    return outcome.kind === "refused" ? outcome : done;
  }

  #changed(sessionId: string, session: SessionInfo | undefined): void {
    this.#changedMeanwhile?.set(sessionId, session);
    const infos = new Map(this.#infos.peek());
    if (session === undefined) infos.delete(sessionId);
    else infos.set(sessionId, session);
    this.#take(infos);
  }

  #take(infos: ReadonlyMap<string, SessionInfo>): void {
    const former = this.#infos.peek();
    batch(() => {
      this.#infos.value = infos;
      const looked = this.#looked.peek();
      if (looked !== undefined) this.#see(looked);
    });
    if (this.#state.peek().kind !== "loaded") return;
    for (const info of infos.values()) {
      const before = former.get(info.sessionId);
      if (before === info || info.summary === undefined || info.summary.at <= (before?.summary?.at ?? 0)) continue;
      for (const listener of [...this.#runListeners]) listener(info);
    }
  }

  #see(sessionId: string): void {
    const info = this.#infos.peek().get(sessionId);
    if (info !== undefined) this.#seen.see(info);
  }

  /** Reads the whole list: changes may have been missed. */
  async #refresh(): Promise<void> {
    const changed = new Map<string, SessionInfo | undefined>();
    this.#changedMeanwhile = changed;
    const listed = await outcomeOf(() => this.#list());
    if (this.#changedMeanwhile !== changed) return;
    this.#changedMeanwhile = undefined;
    if (listed.kind === "refused") {
      if (this.#state.peek().kind !== "loaded") this.#state.value = listed;
      return;
    }
    const infos = new Map(listed.value.map((info) => [info.sessionId, info]));
    for (const [sessionId, info] of changed) {
      if (info === undefined) infos.delete(sessionId);
      else infos.set(sessionId, info);
    }
    this.#seen.begin([...infos.values()]);
    this.#take(infos);
    this.#state.value = { kind: "loaded" };
  }

  async #list(): Promise<readonly SessionInfo[]> {
    const all: SessionInfo[] = [];
    for (let after: string | undefined; ; ) {
      const page = await read(this.#daemon, "session/list", after === undefined ? {} : { after });
      all.push(...page.sessions);
      after = page.next;
      if (after === undefined) return all;
    }
  }

  #sorted(): readonly SessionRow[] {
    const rows = Array.from(this.#infos.value.values(), (info) => this.#row(info));
    this.#former = new Map(rows.map((row) => [row.sessionId, row]));
    return rows.sort((a, b) => b.info.updatedAt - a.info.updatedAt);
  }

  #row(info: SessionInfo): SessionRow {
    const { sessionId } = info;
    const unseen = this.#seen.isUnseen(info) ? info.summary?.outcome : undefined;
    const why = failureOf(info, unseen, this.#seenAt.value.get(sessionId) ?? 0);
    const group = groupOf(info, why, unseen !== undefined);
    const former = this.#former.get(sessionId);
    if (former?.info === info && former.group === group && former.why === why) return former;
    return { sessionId, group, title: titleOf(info), info, ...(why === undefined ? {} : { why }) };
  }
}

class StoredList implements StoredSessions {
  readonly #daemon: Daemon;
  readonly #state = signal<ListState>({ kind: "loading" });
  readonly #sessions = signal<readonly StoredSessionInfo[]>([]);
  readonly #next = signal<string | undefined>(undefined);
  readonly hasMore: ReadonlySignal<boolean>;
  #isLoading = false;

  constructor(daemon: Daemon) {
    this.#daemon = daemon;
    this.hasMore = computed(() => this.#next.value !== undefined);
  }

  get state(): ReadonlySignal<ListState> {
    return this.#state;
  }

  get sessions(): ReadonlySignal<readonly StoredSessionInfo[]> {
    return this.#sessions;
  }

  async more(): Promise<Outcome> {
    if (this.#isLoading) return done;
    this.#isLoading = true;
    const after = this.#next.peek();
    const params = { stored: true, limit: 1, ...(after === undefined ? {} : { storedAfter: after }) };
    const outcome = await outcomeOf(() => read(this.#daemon, "session/list", params));
    this.#isLoading = false;
    if (outcome.kind === "refused") {
      this.#state.value = outcome;
      return outcome;
    }
    const { sessions = [], next } = outcome.value.stored ?? {};
    this.#sessions.value = after === undefined ? sessions : [...this.#sessions.peek(), ...sessions];
    this.#next.value = next;
    this.#state.value = { kind: "loaded" };
    return done;
  }
}

/** A session's name, else the last part of its directory. */
export function titleOf({ name, cwd, sessionId }: Pick<SessionInfo, "name" | "cwd" | "sessionId">): string {
  if (name !== undefined && name.trim() !== "") return name;
  return cwd.split("/").findLast((part) => part !== "") ?? sessionId;
}

function groupOf({ pendingDialogs, state, runId }: SessionInfo, why: string | undefined, isUnseen: boolean): GroupName {
  if (pendingDialogs.length > 0) return "waits";
  if (why !== undefined) return "failed";
  if (runId !== undefined || state === "running" || state === "starting") return "runs";
  if (isUnseen) return "finished";
  return state === "idle" ? "awake" : "asleep";
}

/** What went wrong in a session. Undefined: nothing, or it was seen. */
function failureOf(info: SessionInfo, unseen: RunOutcome | undefined, seenAt: number): string | undefined {
  const { state, exit, unresponsive, ephemeral, lostPrompts, runId } = info;
  if (ephemeral === "lost") return "The session's pi has ended, and the conversation with it.";
  if (unresponsive !== undefined) return "Its pi does not answer.";
  if (state === "crashed") return exit === undefined ? "Its pi has ended." : `Its pi has ended (${exitWords(exit)}).`;
  const lost = lostPrompts.filter(({ at }) => at > seenAt).length;
  if (lost > 0) return lost === 1 ? "A message was lost." : `${lost} messages were lost.`;
  if (runId !== undefined) return undefined;
  if (unseen === "failed") return "Its last run failed.";
  return unseen === "interrupted" ? "Its last run was interrupted." : undefined;
}

function grouped(rows: readonly SessionRow[], filter: string): readonly SessionGroup[] {
  const words = filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const fitting = words.length === 0 ? rows : rows.filter((row) => words.every((word) => textIn(row).includes(word)));
  return groupNames.flatMap((name) => {
    const own = fitting.filter(({ group }) => group === name);
    return own.length === 0 ? [] : [{ name, rows: own }];
  });
}

function textIn({ title, info: { cwd, labels = {}, model } }: SessionRow): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return [title, cwd, model?.provider ?? "", model?.id ?? "", ...pairs].join(" ").toLowerCase();
}
