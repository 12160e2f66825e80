import type { Dialog, DialogAnswer, SessionHandle } from "../../client/index.ts";
import { reportOf } from "../errors.ts";
import { answerLabel, answerOf, questionLines } from "../terminal-dialogs.ts";
import { oneLine } from "../text.ts";
import type { Key, LineEditor } from "./line-editor.ts";
import type { LiveCanvas } from "./live-canvas.ts";
import type { SessionView } from "./session-view.ts";

export interface ConversationOptions {
  readonly session: Pick<SessionHandle, "prompt" | "abort">;
  readonly view: Pick<SessionView, "isRunning">;
  readonly canvas: Pick<LiveCanvas, "line" | "redraw">;
  readonly editor: LineEditor;
  readonly ifRunning: "steer" | "followUp";
}

interface Question {
  readonly dialog: Dialog;
  readonly answer: (answer: DialogAnswer | undefined) => void;
}

/** Handles a user's input: prompts, answers to dialogs (one at a time, in order), and the keys that abort and leave. */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #left = Promise.withResolvers<void>();
  readonly #questions: Question[] = [];
  /** The unfinished line when a dialog opened. */
  #draft: string | undefined;
  #isArmed = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  /** Resolves when the user wants to leave. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  press(text: string | undefined, key: Key): void {
    const { editor, canvas } = this.#options;
    const asked = editor.press(text, key);
    if (asked?.kind !== "interrupt") this.#isArmed = false;
    if (asked?.kind === "line") this.#line(asked.text);
    else if (asked?.kind === "interrupt") this.#interrupt();
    else if (asked?.kind === "end") this.#end();
    canvas.redraw();
  }

  /** The session's state has changed, and with it perhaps the meaning of the line. */
  refresh(): void {
    const { editor, view, ifRunning } = this.#options;
    const [question] = this.#questions;
    const idle = view.isRunning ? `${ifRunning === "steer" ? "steer" : "follow up"}> ` : "> ";
    const label = question === undefined ? idle : answerLabel(question.dialog);
    if (label === editor.label) return;
    editor.label = label;
    this.#options.canvas.redraw();
  }

  /** Asks the user; undefined if the dialog ends elsewhere. */
  ask(dialog: Dialog, signal: AbortSignal): Promise<DialogAnswer | undefined> {
    const { promise, resolve } = Promise.withResolvers<DialogAnswer | undefined>();
    const question: Question = { dialog, answer: resolve };
    const over = (): void => this.#settle(question, undefined);
    signal.addEventListener("abort", over, { once: true });
    this.#questions.push(question);
    if (this.#questions.length === 1) this.#show();
    if (signal.aborted) over();
    return promise.finally(() => signal.removeEventListener("abort", over));
  }

  #show(): void {
    const { editor, canvas } = this.#options;
    const [question] = this.#questions;
    if (question !== undefined) {
      this.#draft ??= editor.text;
      for (const line of questionLines(question.dialog)) canvas.line(line, "magenta");
      const prefill = question.dialog.method === "editor" ? (question.dialog.prefill ?? "") : "";
      editor.set(prefill);
      if (editor.text !== prefill) canvas.line("  (control characters were removed from the text)", "yellow");
    } else if (this.#draft !== undefined) {
      editor.set(this.#draft);
      this.#draft = undefined;
    }
    this.refresh();
    canvas.redraw();
  }

  #settle(question: Question, answer: DialogAnswer | undefined): void {
    const index = this.#questions.indexOf(question);
    if (index === -1) return;
    this.#questions.splice(index, 1);
    question.answer(answer);
    if (index === 0) this.#show();
  }

  #line(text: string): void {
    const [question] = this.#questions;
    if (question !== undefined) {
      const read = answerOf(question.dialog, text);
      if ("answer" in read) this.#settle(question, read.answer);
      else this.#options.canvas.line(read.problem, "yellow");
      return;
    }
    if (text.trim() === "") return;
    const { session, ifRunning } = this.#options;
    session.prompt(text, { ifRunning }).catch((error: unknown) => this.#fail(error));
  }

  #interrupt(): void {
    const { session, view, canvas } = this.#options;
    if (this.#isArmed) {
      this.#left.resolve();
      return;
    }
    this.#isArmed = true;
    if (view.isRunning) {
      canvas.line("aborting the run; Ctrl-C again leaves", "yellow");
      session.abort().catch((error: unknown) => this.#fail(error));
    } else canvas.line("Ctrl-C again leaves; the session continues", "yellow");
  }

  /** Ctrl-D on an empty line dismisses a dialog, otherwise it leaves. */
  #end(): void {
    const [question] = this.#questions;
    if (question === undefined) this.#left.resolve();
    else this.#settle(question, { cancelled: true });
  }

  #fail(error: unknown): void {
    const { name, message } = reportOf(error);
    this.#options.canvas.line(oneLine(`✘ ${message} (${name})`), "red");
  }
}
