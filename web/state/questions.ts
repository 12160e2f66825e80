import { batch, computed, type ReadonlySignal, signal } from "@preact/signals";
import { WireError } from "../../client/browser.ts";
import type { Dialog, DialogAnswer, DialogResolution } from "../../protocol/dialog.ts";
import type { Daemon } from "./daemon.ts";
import { nameOf, whoOf } from "./notes.ts";
import { done, type Outcome, outcomeOf, wordsOf } from "./outcome.ts";
import type { Page } from "./page.ts";
import { act, read } from "./reading.ts";
import { questionEnd } from "./session-notes.ts";

export type QuestionState =
  /** Answers are taken from `answerableFrom` on (Unix time in milliseconds), so that a press meant for something else is not one. */
  | { readonly kind: "open"; readonly answerableFrom: number }
  | { readonly kind: "answering" }
  /** `words`: how it ended and who was first, for a few seconds in its place. */
  | { readonly kind: "ended"; readonly words: string };

/** A question of an extension. Its title, message, options and placeholder are foreign text. */
export interface Question {
  readonly dialog: Dialog;
  readonly sessionId: string;
  /** The title of its session. */
  readonly from: string;
  readonly state: QuestionState;
  /** Why the last answer was refused; the question is open still. */
  readonly refusal?: string;
}

/** The open questions of all sessions, oldest first. */
export interface Questions {
  readonly all: ReadonlySignal<readonly Question[]>;
  /** How many are open. */
  readonly open: ReadonlySignal<number>;
  /** Whether the daemon counts this page as one that can answer: "Answer here". On at first where the token may prompt. */
  readonly answersHere: ReadonlySignal<boolean>;
  /** Whether the token may answer at all. */
  readonly mayAnswer: ReadonlySignal<boolean>;
  setAnswersHere(on: boolean): Promise<Outcome>;
  /**
   * Answers it; `{cancelled: true}` dismisses it. Refuses before its time, and `stale` answers with who was first. While
   * the question is reserved for the client that caused it, waits until all may answer.
   */
  answer(dialogId: string, answer: DialogAnswer): Promise<Outcome>;
  /** Removes an ended question from the list at once. */
  dismissEnded(dialogId: string): void;
}

export interface QuestionsOptions {
  readonly daemon: Daemon;
  readonly page: Page;
  /** The title of a session. */
  readonly titleOf: (sessionId: string) => string;
}

/** A press within this time after a question appeared was meant for something else. */
const settleMs = 500;
/** How long an ended question stays. */
const endedMs = 5_000;
/** Ended ones that stay, at most. */
const maxEnded = 16;

interface Known {
  readonly dialog: Dialog;
  readonly state: QuestionState;
  readonly refusal?: string;
}

export class AllQuestions implements Questions {
  readonly #options: QuestionsOptions;
  readonly #known = signal<readonly Known[]>([]);
  readonly #answersHere = signal(false);
  /** Until the daemon says otherwise. */
  readonly #mayAnswer = signal(true);
  readonly all: ReadonlySignal<readonly Question[]>;
  readonly open: ReadonlySignal<number>;
  /** Dialogs that ended while the open ones were asked for. */
  #endedMeanwhile: Set<string> | undefined;
  /** Ended when the dialog is open to all, or has ended. */
  readonly #waits = new Map<string, AbortController>();

  constructor(options: QuestionsOptions) {
    this.#options = options;
    this.all = computed(() => this.#known.value.map((known) => this.#question(known)));
    this.open = computed(() => this.#known.value.filter(({ state }) => state.kind !== "ended").length);
  }

  get answersHere(): ReadonlySignal<boolean> {
    return this.#answersHere;
  }

  get mayAnswer(): ReadonlySignal<boolean> {
    return this.#mayAnswer;
  }

  /** Follows the dialogs of all sessions, and says that this page answers them, if its token may. */
  async start(): Promise<void> {
    const { daemon } = this.#options;
    daemon.onConnection(({ kind }) => {
      if (kind === "connected") void this.#refresh();
    });
    await daemon.onDialogChanged(({ change, dialogId, dialog, resolution }) => {
      if (change === "opened" && dialog !== undefined) this.#opened(dialog);
      else if (change === "updated") this.#waits.get(dialogId)?.abort();
      else if (change === "resolved") this.#ended(dialogId, resolution);
    });
    await this.setAnswersHere(true);
    await this.#refresh();
  }

  async setAnswersHere(on: boolean): Promise<Outcome> {
    try {
      await this.#options.daemon.setAnswersDialogs(on);
      batch(() => {
        this.#answersHere.value = on;
        this.#mayAnswer.value = true;
      });
      return done;
    } catch (error) {
      const isForbidden = error instanceof WireError && error.kind === "forbidden";
      if (isForbidden) this.#mayAnswer.value = false;
      return { kind: "refused", words: wordsOf(error) };
    }
  }

  async answer(dialogId: string, answer: DialogAnswer): Promise<Outcome> {
    const known = this.#known.value.find(({ dialog }) => dialog.dialogId === dialogId);
    if (known?.state.kind !== "open") return { kind: "refused", words: "The question is not open any more." };
    const { answerableFrom } = known.state;
    if (this.#options.page.now() < answerableFrom) return { kind: "refused", words: "Read the question first." };
    this.#set(dialogId, { dialog: known.dialog, state: { kind: "answering" } });
    const outcome = await outcomeOf(() => this.#respond(dialogId, answer));
    if (outcome.kind === "done") {
      this.#ended(dialogId, outcome.value);
      return done;
    }
    const now = this.#known.value.find(({ dialog }) => dialog.dialogId === dialogId);
    // It ended in the meantime: that says who was first.
    if (now?.state.kind !== "answering")
      return now?.state.kind === "ended" ? { kind: "refused", words: now.state.words } : outcome;
    this.#set(dialogId, { dialog: known.dialog, state: { kind: "open", answerableFrom }, refusal: outcome.words });
    return outcome;
  }

  dismissEnded(dialogId: string): void {
    this.#known.value = this.#known.value.filter(
      ({ dialog, state }) => dialog.dialogId !== dialogId || state.kind !== "ended",
    );
  }

  async #respond(dialogId: string, answer: DialogAnswer): Promise<DialogResolution | undefined> {
    for (;;) {
      try {
        return (await act(this.#options.daemon, "dialog/respond", { dialogId, answer })).resolution;
      } catch (error) {
        if (error instanceof WireError && error.kind === "stale") return await this.#staleOf(dialogId, error);
        const waitMs =
          error instanceof WireError && error.kind === "dialog_reserved" ? error.data["retryAfterMs"] : undefined;
        if (typeof waitMs !== "number") throw error;
        await this.#untilOpen(dialogId, waitMs);
        if (this.#isEnded(dialogId)) throw error;
      }
    }
  }

  /** Another answer was first. The notification that says whose may be on its way. */
  async #staleOf(dialogId: string, error: WireError): Promise<never> {
    if (!this.#isEnded(dialogId)) {
      const { resolution } = error.data as { readonly resolution?: DialogResolution };
      this.#ended(dialogId, resolution);
    }
    throw error;
  }

  #isEnded(dialogId: string): boolean {
    return this.#known.value.every(({ dialog, state }) => dialog.dialogId !== dialogId || state.kind === "ended");
  }

  async #untilOpen(dialogId: string, waitMs: number): Promise<void> {
    const wait = new AbortController();
    this.#waits.set(dialogId, wait);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      wait.signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.#waits.delete(dialogId);
  }

  /** Asks which dialogs are open: notifications about some may have been missed. */
  async #refresh(): Promise<void> {
    const ended = new Set<string>();
    this.#endedMeanwhile = ended;
    const outcome = await outcomeOf(() => this.#list());
    if (this.#endedMeanwhile !== ended) return;
    this.#endedMeanwhile = undefined;
    // The next connection asks again.
    if (outcome.kind === "refused") return;
    batch(() => {
      const open = new Map(outcome.value.map((dialog) => [dialog.dialogId, dialog]));
      for (const { dialog, state } of this.#known.value)
        if (state.kind !== "ended" && !open.has(dialog.dialogId)) this.#ended(dialog.dialogId, undefined);
      for (const dialog of open.values()) if (!ended.has(dialog.dialogId)) this.#opened(dialog);
    });
  }

  async #list(): Promise<readonly Dialog[]> {
    const dialogs: Dialog[] = [];
    for (let after: string | undefined; ; ) {
      const page = await read(this.#options.daemon, "dialog/list", {
        limit: 500,
        ...(after === undefined ? {} : { after }),
      });
      dialogs.push(...page.dialogs);
      after = page.next;
      if (after === undefined) return dialogs;
    }
  }

  #opened(dialog: Dialog): void {
    if (this.#known.value.some((known) => known.dialog.dialogId === dialog.dialogId)) return;
    const state = { kind: "open", answerableFrom: this.#options.page.now() + settleMs } as const;
    this.#known.value = [...this.#known.value, { dialog, state }].sort((a, b) => a.dialog.openedAt - b.dialog.openedAt);
  }

  #ended(dialogId: string, resolution: DialogResolution | undefined): void {
    this.#endedMeanwhile?.add(dialogId);
    this.#waits.get(dialogId)?.abort();
    const known = this.#known.value.find(({ dialog }) => dialog.dialogId === dialogId);
    if (known === undefined || known.state.kind === "ended") return;
    this.#set(dialogId, { dialog: known.dialog, state: { kind: "ended", words: this.#endWords(resolution) } });
    const ended = this.#known.value.filter(({ state }) => state.kind === "ended");
    const tooMany = new Set(ended.slice(0, Math.max(0, ended.length - maxEnded)));
    if (tooMany.size > 0) this.#known.value = this.#known.value.filter((each) => !tooMany.has(each));
    setTimeout(() => this.dismissEnded(dialogId), endedMs);
  }

  #endWords(resolution: DialogResolution | undefined): string {
    if (resolution === undefined) return "The question has ended.";
    const name = nameOf(whoOf(resolution.client, this.#options.daemon.id));
    return `The question ${questionEnd(resolution, name)}`;
  }

  #set(dialogId: string, known: Known): void {
    this.#known.value = this.#known.value.map((each) => (each.dialog.dialogId === dialogId ? known : each));
  }

  #question({ dialog, state, refusal }: Known): Question {
    const { sessionId } = dialog;
    const from = this.#options.titleOf(sessionId);
    return { dialog, sessionId, from, state, ...(refusal === undefined ? {} : { refusal }) };
  }
}
