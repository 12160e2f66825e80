import { effect, type ReadonlySignal, signal } from "@preact/signals";
import type { RunOutcome, SessionInfo } from "../../client/browser.ts";
import { visibleText } from "../text/hidden-characters.ts";
import type { Notice, Tab } from "./page.ts";
import type { Question } from "./questions.ts";
import { titleOf } from "./sessions.ts";

/** `unsupported`: the browser has none. `denied`: it refuses them for this page. */
export type NotificationsState = "unsupported" | "denied" | "off" | "on";

/** Notifications of the browser about questions and ends of runs, while the page is hidden. */
export interface Notifications {
  readonly state: ReadonlySignal<NotificationsState>;
  /** On: asks for the browser's permission, so a person must have pressed something. It holds for this tab. */
  turn(on: boolean): Promise<void>;
  /** Calls `listener` with the session of a notification that was clicked, until the returned function is called. */
  onChosen(listener: (sessionId: string) => void): () => void;
}

export interface NotificationsOptions {
  readonly tab: Tab;
  readonly questions: ReadonlySignal<readonly Question[]>;
  /** Calls `listener` with each session whose run has ended. */
  readonly onRunEnded: (listener: (session: SessionInfo) => void) => void;
}

const key = "pi-rpcd.notifications";
/** So many appear while the page is hidden; one more counts the others. */
const maxShown = 8;
const maxTitle = 80;
const maxBody = 200;

const endWords: Readonly<Record<RunOutcome, string>> = {
  settled: "It has finished.",
  aborted: "Its run was stopped.",
  failed: "Its run failed.",
  interrupted: "Its run was interrupted.",
};

export class TabNotifications implements Notifications {
  readonly #options: NotificationsOptions;
  readonly #state = signal<NotificationsState>("off");
  readonly #listeners = new Set<(sessionId: string) => void>();
  /** Functions that take back what is shown, by tag. */
  readonly #shown = new Map<string, () => void>();
  /** Questions that appeared already. */
  #known: ReadonlySet<string> = new Set();
  #count = 0;

  constructor(options: NotificationsOptions) {
    this.#options = options;
    const { tab, questions, onRunEnded } = options;
    this.#look();
    tab.onVisibility(() => {
      this.#look();
      if (!tab.isHidden) this.#clear();
    });
    effect(() => this.#asked(questions.value));
    onRunEnded((session) => this.#runEnded(session));
  }

  get state(): ReadonlySignal<NotificationsState> {
    return this.#state;
  }

  async turn(on: boolean): Promise<void> {
    const { storage, notifier } = this.#options.tab;
    if (on) {
      await notifier.ask();
      storage.setItem(key, "on");
    } else {
      storage.removeItem(key);
      this.#clear();
    }
    this.#look();
  }

  onChosen(listener: (sessionId: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Deletes from the tab that they are on. */
  forget(): void {
    this.#options.tab.storage.removeItem(key);
    this.#clear();
    this.#look();
  }

  #look(): void {
    const { storage, notifier } = this.#options.tab;
    const { permission } = notifier;
    const isOn = storage.getItem(key) === "on";
    if (permission === undefined) this.#state.value = "unsupported";
    else if (permission === "denied") this.#state.value = "denied";
    else this.#state.value = isOn && permission === "granted" ? "on" : "off";
  }

  #asked(questions: readonly Question[]): void {
    const open = questions.filter(({ state }) => state.kind !== "ended");
    const ids = new Set(open.map(({ dialog }) => dialog.dialogId));
    for (const id of this.#known) if (!ids.has(id)) this.#takeBack(tagOfQuestion(id));
    for (const { dialog, sessionId, from } of open) {
      if (this.#known.has(dialog.dialogId)) continue;
      const body = [dialog.title, dialog.message ?? ""].join("\n");
      this.#show({ tag: tagOfQuestion(dialog.dialogId), title: `${from} asks`, body }, sessionId);
    }
    this.#known = ids;
  }

  #runEnded(session: SessionInfo): void {
    const { sessionId, summary } = session;
    if (summary === undefined) return;
    const { outcome, lastText } = summary;
    const body = outcome === "settled" && lastText !== undefined ? lastText.text : endWords[outcome];
    this.#show({ tag: `run-${sessionId}`, title: titleOf(session), body }, sessionId);
  }

  #show({ tag, title, body }: Omit<Notice, "onClick">, sessionId: string): void {
    const { isHidden, notifier } = this.#options.tab;
    if (this.#state.peek() !== "on" || !isHidden) return;
    this.#count += 1;
    const more = this.#count - maxShown;
    const isMore = more > 0;
    const close = notifier.show({
      tag: isMore ? "more" : tag,
      title: isMore ? "pi-rpcd" : plain(title, maxTitle),
      body: isMore ? `${more} more questions or ends of runs.` : plain(body, maxBody),
      onClick: () => {
        for (const listener of [...this.#listeners]) listener(sessionId);
      },
    });
    if (close !== undefined) this.#shown.set(isMore ? "more" : tag, close);
  }

  #takeBack(tag: string): void {
    this.#shown.get(tag)?.();
    this.#shown.delete(tag);
  }

  #clear(): void {
    for (const tag of [...this.#shown.keys()]) this.#takeBack(tag);
    this.#count = 0;
  }
}

function tagOfQuestion(dialogId: string): string {
  return `question-${dialogId}`;
}

/** Foreign text in a line, with the names of characters that one cannot see. */
function plain(text: string, max: number): string {
  const line = visibleText(text.trim().slice(0, max).toWellFormed()).replace(/\s+/g, " ");
  return line.length < text.trim().length || line.length > max ? `${line.slice(0, max - 1).toWellFormed()}…` : line;
}
