import type { DialogAnswer } from "../../protocol/dialog.ts";
import { WireError } from "../../protocol/errors.ts";
import type { PiCommand } from "../pi/records.ts";
import type { Question } from "./dialog-question.ts";

/** Throws `invalid_params` for an answer that does not fit the question. pi itself accepts anything (measured). */
export function checkAnswer(question: Question, answer: DialogAnswer, maxAnswerBytes: number): void {
  if ("cancelled" in answer) return;
  const { method, options = [] } = question;
  if (method === "confirm") {
    if (!("confirmed" in answer)) throw wrong("/answer", "must have confirmed, or be cancelled");
    return;
  }
  if (!("value" in answer)) throw wrong("/answer", "must have a value, or be cancelled");
  if (method === "select" && !options.includes(answer.value)) {
    throw wrong("/answer/value", `must be one of the dialog's ${options.length} options, character by character`);
  }
  if (Buffer.byteLength(answer.value) > maxAnswerBytes) {
    throw wrong("/answer/value", `must have at most ${maxAnswerBytes} bytes`);
  }
}

/** An answer in pi's format. */
export function replyTo({ requestId: id }: Question, answer: DialogAnswer): PiCommand {
  return { type: "extension_ui_response", id, ...answer };
}

function wrong(path: string, message: string): WireError {
  return new WireError("invalid_params", `The answer does not fit the dialog, which stays open: ${path} ${message}.`, {
    findings: [{ path, message }],
  });
}
