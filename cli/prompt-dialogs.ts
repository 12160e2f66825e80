import { createInterface } from "node:readline/promises";
import type { Readable, Writable } from "node:stream";
import type { DialogHandler } from "../client/index.ts";
import type { Dialog, DialogAnswer } from "../protocol/dialog.ts";
import { answerLabel, answerOf, questionLines } from "./terminal-dialogs.ts";
import { printable } from "./text.ts";

export interface TerminalDialogOptions {
  readonly input: Readable;
  /** Where the dialog is shown, separate from the result. */
  readonly output: Writable;
  /** Whether both are a terminal, which echoes the input. */
  readonly isTerminal: boolean;
  /** Resolves when the dialog may be printed: the current line is complete, and other output waits. */
  readonly before: () => Promise<void> | void;
  /** The dialog is over: other output may continue. */
  readonly after: () => void;
  /** Ctrl-C during a dialog; it aborts the run. */
  readonly onInterrupt: () => void;
}

/**
 * Lets the user answer the dialogs of extensions, one at a time, in order. Ctrl-D dismisses one. A dialog that ends
 * elsewhere is removed; one whose text cannot be edited in one line is left to other clients.
 */
export function terminalDialogHandler(options: TerminalDialogOptions): DialogHandler {
  let turn: Promise<unknown> = Promise.resolve();
  return (dialog, { signal }) => {
    const answered = turn.then(() => ask(dialog, signal, options));
    turn = answered.catch(() => {});
    return answered;
  };
}

async function ask(
  dialog: Dialog,
  signal: AbortSignal,
  options: TerminalDialogOptions,
): Promise<DialogAnswer | undefined> {
  if (signal.aborted) return undefined;
  await options.before();
  try {
    return await askNow(dialog, signal, options);
  } finally {
    options.after();
  }
}

async function askNow(
  dialog: Dialog,
  signal: AbortSignal,
  options: TerminalDialogOptions,
): Promise<DialogAnswer | undefined> {
  const say = (line: string): void => void options.output.write(`${line}\n`);
  for (const line of questionLines(dialog)) say(line);
  const prefill = dialog.method === "editor" ? (dialog.prefill ?? "") : "";
  const reason = unfit(prefill);
  if (reason !== undefined) {
    say(`  (${reason}; to answer: pi-rpcd dialog answer ${dialog.dialogId} TEXT)`);
    return undefined;
  }
  for (;;) {
    const line = await typed({ label: answerLabel(dialog), prefill, signal }, options);
    if (line === "ended") {
      say("  (it has ended)");
      return undefined;
    }
    if (line === undefined) return { cancelled: true };
    const given = answerOf(dialog, line.text);
    if ("answer" in given) return given.answer;
    say(given.problem);
  }
}

/**
 * Why a text cannot be edited in one line: readline would read a part of it as a key, or the terminal would interpret
 * it.
 */
function unfit(prefill: string): string | undefined {
  if (/[\r\n\u2028\u2029]/.test(prefill)) return "has several lines";
  return printable(prefill) === prefill ? undefined : "contains control characters";
}

interface Line {
  readonly label: string;
  /** The initial text of the line. */
  readonly prefill: string;
  readonly signal: AbortSignal;
}

/** Reads a line; undefined at the end of the input. */
async function typed(
  { label, prefill, signal }: Line,
  { input, output, isTerminal, onInterrupt }: TerminalDialogOptions,
): Promise<{ readonly text: string } | "ended" | undefined> {
  const lines = createInterface({ input, output, terminal: isTerminal, historySize: 0 });
  const closed = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  lines.on("SIGINT", onInterrupt);
  try {
    const asked = lines.question(label, { signal }).then((text) => ({ text }));
    asked.catch(() => {});
    if (prefill !== "") lines.write(prefill);
    return await Promise.race([asked, closed]);
  } catch (error) {
    if (signal.aborted) return "ended";
    if (error instanceof Error && error.name === "AbortError") return undefined;
    throw error;
  } finally {
    lines.close();
  }
}
