import { type ReadonlySignal, signal } from "@preact/signals";
import type { Daemon } from "./daemon.ts";
import { Drafts } from "./drafts.ts";
import { type Notifications, TabNotifications } from "./notifications.ts";
import { type OpenSession, ShownSession } from "./open-session.ts";
import type { Tab } from "./page.ts";
import { AllQuestions, type Questions } from "./questions.ts";
import { AllSessions, type Sessions, titleOf } from "./sessions.ts";

/** What there is once the page has been connected. It stays when the connection ends. */
export interface Workspace {
  readonly sessions: Sessions;
  readonly questions: Questions;
  readonly notifications: Notifications;
  readonly selected: ReadonlySignal<OpenSession | undefined>;
  /** Shows a session, or none. Shows the same one again without loading it again. Starts no pi. */
  select(sessionId: string | undefined): void;
  /** A part of the state whose code is loaded when it is first shown. It is made once. */
  part<Part>(Made: PartOf<Part>): Part;
}

export interface PartOptions {
  readonly daemon: Daemon;
  readonly page: Tab;
  /** The title of a session. */
  readonly titleOf: (sessionId: string) => string;
}

type PartOf<Part> = new (options: PartOptions) => Part;

export interface WorkspaceOptions {
  readonly daemon: Daemon;
  readonly page: Tab;
  readonly isConnected: ReadonlySignal<boolean>;
}

export class PageWorkspace implements Workspace {
  readonly #options: WorkspaceOptions;
  readonly sessions: AllSessions;
  readonly questions: AllQuestions;
  readonly #parts = new Map<PartOf<unknown>, unknown>();
  readonly notifications: TabNotifications;
  readonly #drafts = new Drafts();
  readonly #selected = signal<ShownSession | undefined>(undefined);

  constructor(options: WorkspaceOptions) {
    this.#options = options;
    const { daemon, page } = options;
    this.sessions = new AllSessions(daemon, page.storage);
    this.questions = new AllQuestions({ daemon, page, titleOf: (sessionId) => this.#titleOf(sessionId) });
    this.notifications = new TabNotifications({
      tab: page,
      questions: this.questions.all,
      onRunEnded: (listener) => this.sessions.onRunEnded(listener),
    });
    page.onVisibility(() => this.#look());
  }

  get selected(): ReadonlySignal<OpenSession | undefined> {
    return this.#selected;
  }

  /** Never rejects: what is refused is tried again with the next connection. */
  async start(): Promise<void> {
    await Promise.allSettled([this.sessions.start(), this.questions.start()]);
  }

  /** Deletes what the tab keeps. */
  forget(): void {
    this.sessions.forget();
    this.notifications.forget();
  }

  select(sessionId: string | undefined): void {
    const former = this.#selected.peek();
    if (former?.sessionId === sessionId) return;
    former?.close();
    this.#selected.value = sessionId === undefined ? undefined : this.#open(sessionId);
    this.#look();
  }

  part<Part>(Made: PartOf<Part>): Part {
    const { daemon, page } = this.#options;
    const part = this.#parts.get(Made) ?? new Made({ daemon, page, titleOf: (sessionId) => this.#titleOf(sessionId) });
    this.#parts.set(Made, part);
    return part as Part;
  }

  #titleOf(sessionId: string): string {
    const info = this.sessions.info(sessionId);
    return info === undefined ? sessionId : titleOf(info);
  }

  #open(sessionId: string): ShownSession {
    const { daemon, page, isConnected } = this.#options;
    return new ShownSession({
      daemon,
      page,
      sessionId,
      draft: this.#drafts.for(sessionId),
      info: () => this.sessions.info(sessionId),
      questions: this.questions.all,
      isConnected,
      mayPrompt: this.questions.mayAnswer,
    });
  }

  #look(): void {
    const { page } = this.#options;
    this.sessions.look(page.isHidden ? undefined : this.#selected.peek()?.sessionId, page.now());
  }
}
