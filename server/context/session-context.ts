import type { Logger } from "pino";
import type { ContextError } from "../../protocol/context-option.ts";
import type { WireError } from "../../protocol/errors.ts";
import type { SessionRecord } from "../core/session-record.ts";
import type { Journal } from "../log/journal.ts";
import type { Child } from "../pi/child.ts";
import type { StoredSession } from "../store/sessions.ts";
import { LostContext } from "./kept-files.ts";
import { sumOfText } from "./work.ts";

export interface SessionContextParts {
  readonly options: {
    /** Sends the session's context to a child that has just started. Throws `context_transport_failed`. */
    readonly giveContext: (child: Child, stored: StoredSession, signal: AbortSignal) => Promise<void>;
    readonly log: Logger;
  };
  readonly record: SessionRecord;
  readonly journal: Journal;
  /** Another pi has the context, but nothing of the later conversation. */
  readonly onRestored: () => void;
  /** The session's context is lost, so the session closes after its failed start. */
  readonly onLost: () => void;
}

/** The context with which a session began. */
export class SessionContext {
  readonly #parts: SessionContextParts;
  #error: ContextError | undefined;

  constructor(parts: SessionContextParts) {
    this.#parts = parts;
  }

  /** Why the session has no context, if it was created with one. */
  get error(): ContextError | undefined {
    return this.#error;
  }

  /** The session starts without its context. */
  failed({ code, message, data, kind }: WireError): void {
    this.#error = { code, message, data };
    this.#parts.journal.say("context/failed", { error: this.#error });
    this.#parts.options.log.warn({ error: kind }, "a session started without its context");
  }

  /**
   * Sends the context to a pi that has just started: that of an ephemeral session has no history. Ends the session if
   * that fails, and throws `context_transport_failed`, `overloaded`, `child_exited` or the signal's reason.
   */
  async give(child: Child, generation: number, signal: AbortSignal): Promise<void> {
    const { options, record, onRestored, onLost } = this.#parts;
    if (record.stored.context?.kept === undefined) return;
    try {
      await options.giveContext(child, record.stored, signal);
    } catch (error) {
      await child.stop();
      await child.cleaned;
      // After any other error, the next pi may accept it.
      if (error instanceof LostContext) onLost();
      throw error;
    }
    if (generation > 1) onRestored();
  }

  /** Records the first prompt after the context. Returns whether it repeats the last message of the user there. */
  promptGiven(text: string): boolean {
    const { context } = this.#parts.record.stored;
    if (context?.unanswered === undefined) return false;
    const isRepeated = context.unanswered === sumOfText(text);
    const { unanswered: _unanswered, summary, ...rest } = context;
    const warnings = isRepeated ? [...summary.warnings, "duplicate_prompt" as const] : summary.warnings;
    this.#parts.record.givenContext({ ...rest, summary: { ...summary, warnings } });
    return isRepeated;
  }
}
