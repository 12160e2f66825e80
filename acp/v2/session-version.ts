import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { NotificationParams } from "../../protocol/notifications.ts";
import type { SessionNotification } from "../port.ts";
import { stopReasonOf } from "../run-end.ts";
import type { PermissionParams, SessionParts, SessionVersion } from "../session-version.ts";
import { AnswersAtInsertion, failed } from "./answers-at-insertion.ts";
import { Foreground, type Stop } from "./foreground.ts";
import { UpdateEncoder } from "./update-encoder.ts";

/** A session as version 2 tells it. */
export class SecondVersion implements SessionVersion {
  readonly answers: AnswersAtInsertion;
  readonly echoes = true;
  readonly questionsAreTools = false;
  readonly #parts: SessionParts;
  readonly #foreground: Foreground;
  #encoder = new UpdateEncoder();

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#foreground = new Foreground(parts);
    this.answers = new AnswersAtInsertion({
      parts,
      foreground: this.#foreground,
      lastMessage: () => this.#encoder.lastUserMessage,
    });
    // The end of its run never comes: nothing waits for it.
    parts.left.addEventListener("abort", () => this.#foreground.run(false), { once: true });
  }

  encode(update: SessionUpdate, block?: number): readonly object[] {
    return this.#encoder.encode(update, block);
  }

  permission({ sessionId, toolCallId, title, message, options }: PermissionParams): object {
    const description = message === undefined || message === "" ? {} : { description: message };
    const subject = toolCallId === undefined ? {} : { subject: { type: "tool_call", toolCall: { toolCallId } } };
    return { sessionId, title, ...description, ...subject, options };
  }

  restart(): void {
    this.#encoder = new UpdateEncoder();
  }

  attached(isRunning?: boolean): void {
    this.#foreground.snapshot(isRunning);
  }

  missed(isRunning: boolean): void {
    this.#foreground.forgetDialogs();
    this.#foreground.run(isRunning);
  }

  async closing(): Promise<void> {
    const { port, sessionId, caughtUp } = this.#parts;
    const { runId } = await port.call("session/get", { sessionId });
    await caughtUp();
    if (runId === undefined) await this.#foreground.runOver;
  }

  asked(dialogId: string): void {
    this.#foreground.asked(dialogId);
  }

  inserted(promptId: string, given: string): void {
    this.answers.inserted(promptId, this.#encoder.messageIdOf(given));
  }

  received({ name, params }: SessionNotification): void {
    switch (name) {
      case "run/started":
        this.#foreground.run(true);
        break;
      case "run/ended":
        this.#foreground.run(false, this.#stopOf(params));
        break;
      case "dialog/resolved":
        this.#foreground.resolved(params.dialogId);
        break;
      case "session/event":
        this.#foreground.look();
        break;
      default:
    }
  }

  #stopOf(end: NotificationParams<"run/ended">): Stop {
    const { runId, promptIds } = end;
    const _meta = { "pi-rpcd": { runId, promptIds, ...this.#parts.usageOf(runId) } };
    try {
      return { stopReason: stopReasonOf(end, { runId }), _meta };
    } catch (error) {
      return { ...failed(error), _meta };
    }
  }
}
