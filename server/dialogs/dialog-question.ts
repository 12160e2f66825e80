import type { Dialog, DialogMethod } from "../../protocol/dialog.ts";
import type { PiEvent } from "../pi/records.ts";

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
    ...(method === "confirm" ? given("message", text(event["message"])) : {}),
    ...(method === "input" ? given("placeholder", text(event["placeholder"])) : {}),
    ...(method === "editor" ? given("prefill", text(event["prefill"])) : {}),
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

function given<K extends string>(name: K, value: string | undefined): { readonly [P in K]?: string } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: string };
}
