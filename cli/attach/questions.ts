import type { Component } from "@earendil-works/pi-tui";
import type { Dialog, DialogAnswer } from "../../client/index.ts";
import { questionLines } from "../terminal-dialogs.ts";
import { oneLine, printable, shorten } from "../text.ts";
import { Choice } from "./choice.ts";
import { PromptEditor } from "./prompt-editor.ts";
import type { Screen } from "./screen.ts";

interface Question {
  readonly dialog: Dialog;
  readonly answer: (answer: DialogAnswer | undefined) => void;
}

/** A user who pressed a key this recently may press the next one before reading a question. */
const typingMs = 1_000;

/**
 * Asks the user the dialogs of extensions, one at a time, in order. A question waits while the user types: it takes the
 * keys only when the editor is empty and no key was pressed for a second.
 */
export class Questions {
  readonly #screen: Screen;
  readonly #open: Question[] = [];
  #shown: Component | undefined;
  /** When the user last pressed a key that was not for a question. */
  #typedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(screen: Screen) {
    this.#screen = screen;
    screen.onTyped = () => {
      if (this.#shown !== undefined) return;
      this.#typedAt = Date.now();
      if (this.#open.length > 0) this.#wait();
    };
  }

  /** Whether the keys are for a question. */
  get isAsking(): boolean {
    return this.#shown !== undefined;
  }

  /** Asks the user; undefined if the dialog ends elsewhere. */
  ask(dialog: Dialog, signal: AbortSignal): Promise<DialogAnswer | undefined> {
    const { promise, resolve } = Promise.withResolvers<DialogAnswer | undefined>();
    const question: Question = { dialog, answer: resolve };
    const over = (): void => this.#settle(question, undefined);
    signal.addEventListener("abort", over, { once: true });
    this.#open.push(question);
    if (this.#open.length === 1) this.#show();
    if (signal.aborted) over();
    return promise.finally(() => signal.removeEventListener("abort", over));
  }

  dismiss(): void {
    const [question] = this.#open;
    if (question !== undefined) this.#settle(question, { cancelled: true });
  }

  /** Shows the first question, or why it waits. */
  #show(): void {
    if (this.#shown !== undefined) this.#screen.endInput(this.#shown);
    this.#shown = undefined;
    this.#screen.notice("question", undefined);
    clearTimeout(this.#timer);
    const [question] = this.#open;
    if (question === undefined) return;
    if (Date.now() - this.#typedAt < typingMs || !this.#isFree) {
      this.#wait();
      return;
    }
    this.#shown = this.#inputFor(question);
    this.#screen.beginInput(this.#shown);
  }

  #wait(): void {
    const { title = "" } = this.#open[0]?.dialog ?? {};
    const rule = "waits until your text is sent or cleared (Ctrl-C)";
    this.#screen.notice("question", `? ${shorten(oneLine(title), 60)} · ${rule}`);
    clearTimeout(this.#timer);
    // Until the next key, the editor stays as it is.
    this.#timer = setTimeout(() => {
      if (this.#isFree) this.#show();
    }, typingMs);
  }

  get #isFree(): boolean {
    return this.#screen.input === this.#screen.editor && this.#screen.editor.getText() === "";
  }

  #inputFor(question: Question): Component {
    const { dialog } = question;
    const settle = (answer: DialogAnswer | undefined): void => this.#settle(question, answer ?? { cancelled: true });
    const { method, title, options = [], prefill = "" } = dialog;
    const lines = questionLines({ ...dialog, options: [] });
    const { theme, tui } = this.#screen;
    if (method === "select" || method === "confirm") {
      // The list has the title.
      if (lines.length > 1) this.#screen.line(lines.join("\n"), "magenta");
      const items = method === "select" ? options : ["yes", "no"];
      return new Choice({
        ...{ title, theme, items: items.map((label) => ({ label })) },
        ...(method === "confirm" ? { shortcuts: { y: 0, n: 1 }, preselected: 1 } : {}),
        onChoice: (index) => {
          if (index === undefined) settle(undefined);
          else settle(method === "select" ? { value: options[index] as string } : { confirmed: index === 0 });
        },
      });
    }
    this.#screen.line([...lines, "  (Enter answers, Esc dismisses)"].join("\n"), "magenta");
    const editor = new PromptEditor(tui, theme);
    editor.borderColor = (text) => theme.paint("magenta", text);
    const initial = method === "editor" ? prefill : "";
    editor.setText(printable(initial));
    if (printable(initial) !== initial) {
      this.#screen.line("  (control characters were removed from the text)", "yellow");
    }
    editor.onText = (value) => settle({ value });
    return editor;
  }

  #settle(question: Question, answer: DialogAnswer | undefined): void {
    const index = this.#open.indexOf(question);
    if (index === -1) return;
    this.#open.splice(index, 1);
    question.answer(answer);
    if (answer !== undefined) this.#screen.line(`? ${oneLine(question.dialog.title)}: ${said(answer)}`, "dim");
    if (index === 0) this.#show();
  }
}

function said(answer: DialogAnswer): string {
  if ("cancelled" in answer) return "dismissed";
  return "confirmed" in answer
    ? answer.confirmed
      ? "yes"
      : "no"
    : shorten(oneLine(answer.value.slice(0, 1_000)), 200);
}
