import type { ReadonlySignal } from "@preact/signals";
import type { Dialog, DialogAnswer } from "../../protocol/dialog.ts";
import type { Outcome } from "./outcome.ts";

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
