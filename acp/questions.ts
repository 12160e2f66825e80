import { setTimeout } from "node:timers/promises";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Dialog, DialogAnswer } from "../protocol/dialog.ts";
import { WireError } from "../protocol/errors.ts";
import type { NotificationParams } from "../protocol/notifications.ts";
import { isRecord } from "../protocol/objects.ts";
import { isPermission, permissionOptions } from "./permission.ts";
import type { Port } from "./port.ts";
import type { Params, RpcPeer } from "./rpc-peer.ts";
import type { SessionVersion } from "./session-version.ts";

export interface QuestionsOptions {
  readonly sessionId: string;
  readonly port: Port;
  readonly peer: Pick<RpcPeer, "request">;
  /** Whether the client can show a form. */
  readonly hasForms: boolean;
  readonly version: Pick<SessionVersion, "questionsAreTools" | "permission">;
  /** The id for the client of the tool call that waits for an answer: the only one that runs. */
  readonly waitingTool: () => string | undefined;
  readonly update: (update: SessionUpdate) => void;
  /** Tells the title and the content of a running tool call again. */
  readonly retell: (toolCallId: string) => void;
  /** Tells the user that a question could not be asked. */
  readonly onUnasked: (title: string) => void;
}

type DialogEnd = NotificationParams<"dialog/resolved">;

/** A question in the form of ACP. */
interface Asking {
  readonly method: "session/request_permission" | "elicitation/create";
  readonly params: object;
  /** Undefined: the client's answer is none. */
  readonly answerOf: (answer: Params) => DialogAnswer | undefined;
}

/**
 * The questions of a session's extensions, one at a time. Others may answer them too: the first answer counts. An error or
 * a lost connection does not count as an answer.
 */
export class Questions {
  readonly #options: QuestionsOptions;
  readonly #waiting: Dialog[] = [];
  /** Those that this client left to others. */
  readonly #left = new Set<string>();
  /** Those that were opened or resolved. */
  readonly #known = new Set<string>();
  /** Those for which a tool call was made. */
  readonly #withToolCall = new Set<string>();
  /** By dialog: the tool call that clients show with the title and the text of the question. */
  readonly #renamed = new Map<string, string>();
  #current: { readonly dialogId: string; readonly ended: AbortController } | undefined;

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  opened(dialog: Dialog): void {
    if (!this.#options.port.answersDialogs || this.#known.has(dialog.dialogId)) return;
    this.#known.add(dialog.dialogId);
    if (!this.#options.hasForms && (dialog.method === "input" || dialog.method === "editor")) this.#leave(dialog);
    else {
      this.#waiting.push(dialog);
      this.#next();
    }
  }

  resolved({ dialogId, by, how, title }: Pick<DialogEnd, "dialogId" | "by" | "how" | "title">): void {
    // A list of open dialogs that was made before can still come.
    this.#known.add(dialogId);
    if (this.#left.delete(dialogId) && by === "no_responder") this.#options.onUnasked(title);
    const at = this.#waiting.findIndex((waiting) => waiting.dialogId === dialogId);
    if (at !== -1) this.#waiting.splice(at, 1);
    if (this.#current?.dialogId === dialogId) this.#current.ended.abort();
    const renamed = this.#renamed.get(dialogId);
    if (renamed !== undefined) this.#options.retell(renamed);
    this.#renamed.delete(dialogId);
    if (!this.#withToolCall.delete(dialogId)) return;
    const status = how === "answered" ? "completed" : "failed";
    this.#options.update({ sessionUpdate: "tool_call_update", toolCallId: toolCallFor(dialogId), status });
  }

  /** The client does not get the session's questions any more, until they are opened again. */
  withdraw(): void {
    this.#waiting.length = 0;
    this.#left.clear();
    this.#known.clear();
    this.#withToolCall.clear();
    this.#renamed.clear();
    this.#current?.ended.abort();
  }

  #leave({ dialogId }: Dialog): void {
    this.#left.add(dialogId);
    this.#options.port.call("dialog/respond", { dialogId, abstain: true }).catch(() => {});
  }

  #next(): void {
    if (this.#current !== undefined) return;
    const dialog = this.#waiting.shift();
    if (dialog === undefined) return;
    const { dialogId, title } = dialog;
    const ended = new AbortController();
    this.#current = { dialogId, ended };
    const tool = this.#options.waitingTool();
    const { questionsAreTools } = this.#options.version;
    const toolCallId = tool ?? (questionsAreTools ? toolCallFor(dialogId) : undefined);
    if (tool === undefined && toolCallId !== undefined) {
      this.#withToolCall.add(dialogId);
      const about = { title, kind: "other", status: "pending", ...described(dialog) } as const;
      this.#options.update({ sessionUpdate: "tool_call", toolCallId, ...about });
    }
    void this.#ask(dialog, toolCallId, ended.signal).then(() => {
      this.#current = undefined;
      this.#next();
    });
  }

  async #ask(dialog: Dialog, toolCallId: string | undefined, signal: AbortSignal): Promise<void> {
    const { method, params, answerOf } = this.#asking(dialog, toolCallId);
    try {
      const answer = answerOf(await this.#options.peer.request(method, params, signal));
      if (answer !== undefined) await this.#respond(dialog.dialogId, answer, signal);
    } catch {
      // Somebody else answered, or this client cannot.
    }
  }

  /** A dialog can be reserved for the client whose prompt it came from. */
  async #respond(dialogId: string, answer: DialogAnswer, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.#options.port.call("dialog/respond", { dialogId, answer });
        return;
      } catch (error) {
        const retryAfterMs = error instanceof WireError ? error.data["retryAfterMs"] : undefined;
        if (!(error instanceof WireError) || error.kind !== "dialog_reserved" || typeof retryAfterMs !== "number")
          throw error;
        await setTimeout(retryAfterMs, undefined, { signal });
      }
    }
  }

  #asking(dialog: Dialog, toolCallId: string | undefined): Asking {
    const { method, options = [] } = dialog;
    if (method === "confirm")
      return this.#permission(dialog, toolCallId, ["Yes", "No"], ([yes]) => ({ confirmed: yes === "Yes" }));
    if (method === "select" && (!this.#options.hasForms || isPermission(options)))
      return this.#permission(dialog, toolCallId, options, ([value]) => ({ value }));
    return this.#form(dialog, toolCallId);
  }

  #permission(
    dialog: Dialog,
    toolCallId: string | undefined,
    texts: readonly string[],
    answerWith: (chosen: [text: string]) => DialogAnswer,
  ): Asking {
    const { sessionId, version } = this.#options;
    const { dialogId, title, message } = dialog;
    const options = permissionOptions(texts);
    if (version.permission === undefined && toolCallId !== undefined) this.#renamed.set(dialogId, toolCallId);
    const params = version.permission?.({ sessionId, toolCallId, title, message, options }) ?? {
      sessionId,
      toolCall: { toolCallId, title, ...described(dialog) },
      options,
    };
    return {
      method: "session/request_permission",
      params,
      answerOf: ({ outcome }) => {
        if (!isRecord(outcome)) return undefined;
        if (outcome["outcome"] === "cancelled") return { cancelled: true };
        const chosen = options.find(({ optionId }) => optionId === outcome["optionId"]);
        return chosen === undefined ? undefined : answerWith([chosen.name]);
      },
    };
  }

  #form(
    { method, title, message, options = [], placeholder, prefill }: Dialog,
    toolCallId: string | undefined,
  ): Asking {
    const { sessionId } = this.#options;
    const property =
      method === "select"
        ? { type: "string", title, enum: options }
        : { type: "string", title, ...(prefill === undefined ? {} : { default: prefill }) };
    const description = placeholder === undefined ? {} : { description: placeholder };
    const requestedSchema = {
      type: "object",
      properties: { value: { ...property, ...description } },
      required: ["value"],
    };
    return {
      method: "elicitation/create",
      params: { mode: "form", sessionId, toolCallId, message: message ?? title, requestedSchema },
      answerOf: ({ action, content }) => {
        const value = action === "accept" && isRecord(content) ? content["value"] : undefined;
        return typeof value === "string" ? { value } : { cancelled: true };
      },
    };
  }
}

/** The id of the tool call for a question that belongs to none. */
function toolCallFor(dialogId: string): string {
  return `dialog-${dialogId}`;
}

/** The text of the question, without its title. */
function described({ message }: Dialog): Pick<Extract<SessionUpdate, { sessionUpdate: "tool_call" }>, "content"> {
  return message === undefined || message === ""
    ? {}
    : { content: [{ type: "content", content: { type: "text", text: message } }] };
}
