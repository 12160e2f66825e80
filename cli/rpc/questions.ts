import type { DialogAnswer, DialogMethod } from "../../protocol/dialog.ts";

interface Question {
  /** The daemon's id, once it is known. */
  dialogId?: string;
  readonly method: DialogMethod;
  /** Clock time at which the front end could read it; undefined: not written yet. */
  writtenAt?: number;
  /** An answer that came before the daemon's id was known. */
  early?: DialogAnswer;
  hasAbstained?: true;
}

/** What the daemon is told about a question. */
export type Reply =
  | { readonly dialogId: string; readonly answer: DialogAnswer }
  | { readonly dialogId: string; readonly abstain: true };

/** Some front ends cancel each `input` and `editor` automatically. A person needs longer than this. */
const unseenMs = 500;

/** Whether the user types the answer. */
const isTyped: Readonly<Record<DialogMethod, boolean>> = { select: false, confirm: false, input: true, editor: true };

/** The questions that a front end has got, and what it means by its answers. */
export class Questions {
  readonly #now: () => number;
  /** By pi's id. */
  readonly #open = new Map<string, Question>();

  /** `now`: a monotonic clock, in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Whether the front end has got it, or will. Not of one that has ended. */
  has(requestId: string): boolean {
    return this.#open.has(requestId);
  }

  /** The questions that were left to others. */
  get abstained(): readonly string[] {
    return Array.from(this.#open.values()).flatMap(({ dialogId, hasAbstained }) =>
      hasAbstained === true && dialogId !== undefined ? [dialogId] : [],
    );
  }

  /** Reads a record of pi. Returns what to call when the front end has got it; undefined: it is not a question. */
  asked({ type, id, method }: Readonly<Record<string, unknown>>): (() => void) | undefined {
    if (type !== "extension_ui_request" || typeof id !== "string" || !isDialogMethod(method)) return undefined;
    this.#question(id, method);
    return () => this.written(id);
  }

  /** The front end has got this one. */
  written(requestId: string): void {
    const question = this.#open.get(requestId);
    if (question !== undefined) question.writtenAt ??= this.#now();
  }

  /** The daemon has this one. Returns what the front end has answered already. */
  opened(requestId: string, dialogId: string, method: DialogMethod): Reply | undefined {
    const question = this.#question(requestId, method);
    question.dialogId = dialogId;
    return question.early === undefined ? undefined : replyOf(question, question.early, this.#now());
  }

  resolved(requestId: string): void {
    this.#open.delete(requestId);
  }

  clear(): void {
    this.#open.clear();
  }

  /** The front end answers. Undefined: the answer is stray or late, or it waits. */
  answered({ id, ...fields }: Readonly<Record<string, unknown>>): Reply | undefined {
    const question = typeof id === "string" ? this.#open.get(id) : undefined;
    const answer = answerIn(fields);
    if (question === undefined || answer === undefined) return undefined;
    if (question.dialogId === undefined) question.early ??= answer;
    return replyOf(question, answer, this.#now());
  }

  #question(requestId: string, method: DialogMethod): Question {
    const known = this.#open.get(requestId);
    if (known !== undefined) return known;
    const question: Question = { method };
    this.#open.set(requestId, question);
    return question;
  }
}

function replyOf(question: Question, answer: DialogAnswer, now: number): Reply | undefined {
  const { dialogId, method, writtenAt = now } = question;
  if (dialogId === undefined) return undefined;
  if (!("cancelled" in answer) || !isTyped[method] || now - writtenAt >= unseenMs) return { dialogId, answer };
  question.hasAbstained = true;
  return { dialogId, abstain: true };
}

function isDialogMethod(method: unknown): method is DialogMethod {
  return typeof method === "string" && Object.hasOwn(isTyped, method);
}

function answerIn(answer: Readonly<Record<string, unknown>>): DialogAnswer | undefined {
  if (answer["cancelled"] === true) return { cancelled: true };
  if (typeof answer["value"] === "string") return { value: answer["value"] };
  if (typeof answer["confirmed"] === "boolean") return { confirmed: answer["confirmed"] };
  return undefined;
}
