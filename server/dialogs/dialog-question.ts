import type { Dialog, DialogAnswer, DialogMethod } from "../../protocol/dialog.ts";
import { WireError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/objects.ts";
import type { PiCommand, PiEvent } from "../pi/records.ts";

/** An extension's question, in the fields that clients see. */
export type Question = Pick<
  Dialog,
  "requestId" | "method" | "title" | "message" | "options" | "placeholder" | "prefill"
>;

export interface AskedQuestion {
  readonly question: Question;
  /** pi ends it by itself after this time. */
  readonly timeoutMs: number | undefined;
  /** Size of its texts. */
  readonly bytes: number;
}

const methods: Readonly<Record<DialogMethod, true>> = { select: true, confirm: true, input: true, editor: true };

/** Reads an extension's question, if the event is one (docs/rpc-extension-ui.md of pi). */
export function questionOf(event: PiEvent): AskedQuestion | undefined {
  const { type, id, method, timeout } = event;
  if (type !== "extension_ui_request" || typeof id !== "string" || !isDialogMethod(method)) return undefined;
  const question: Question = {
    requestId: id,
    method,
    // An extension may pass any value; pi does not validate it.
    title: text(event["title"]) ?? "",
    ...(method === "select" ? { options: texts(event["options"]) } : {}),
    ...(method === "confirm" ? defined({ message: text(event["message"]) }) : {}),
    ...(method === "input" ? defined({ placeholder: text(event["placeholder"]) }) : {}),
    ...(method === "editor" ? defined({ prefill: text(event["prefill"]) }) : {}),
  };
  const timeoutMs = typeof timeout === "number" && timeout !== 0 ? timeout : undefined;
  return { question, timeoutMs, bytes: Buffer.byteLength(JSON.stringify(question)) };
}

function isDialogMethod(method: unknown): method is DialogMethod {
  return typeof method === "string" && Object.hasOwn(methods, method);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((part) => typeof part === "string") : [];
}

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
