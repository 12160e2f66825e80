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
    /** Brings the session's context to a child that has just started. Throws `context_transport_failed`. */
    readonly giveContext: (child: Child, stored: StoredSession, signal: AbortSignal) => Promise<void>;
    readonly log: Logger;
  };
  readonly record: SessionRecord;
  readonly journal: Journal;
  /** Another pi has the context, and nothing else of what was said. */
  readonly onRestored: () => void;
  /** The session cannot have its context any more, and is to be closed when its start has failed. */
  readonly onLost: () => void;
}

/** The past that a session was given. */
export class SessionContext {
  readonly #parts: SessionContextParts;
  #error: ContextError | undefined;

  constructor(parts: SessionContextParts) {
    this.#parts = parts;
  }

  /** Why the session has no context, where it was to have one. */
  get error(): ContextError | undefined {
    return this.#error;
  }

  /** The session begins without the context that it was to have. */
  failed({ code, message, data, kind }: WireError): void {
    this.#error = { code, message, data };
    this.#parts.journal.say("context/failed", { error: this.#error });
    this.#parts.options.log.warn({ error: kind }, "a session has begun without its context");
  }

  /**
   * Brings the context to a pi that has just started: one of an ephemeral session has nothing of what was said before. Ends
   * it where that fails, and throws `context_transport_failed`, `overloaded`, `child_exited` or the signal's reason.
   */
  async give(child: Child, generation: number, signal: AbortSignal): Promise<void> {
    const { options, record, onRestored, onLost } = this.#parts;
    if (record.stored.context?.kept === undefined) return;
    try {
      await options.giveContext(child, record.stored, signal);
    } catch (error) {
      await child.stop();
      await child.cleaned;
      // Whatever else fails, the next pi may get it.
      if (error instanceof LostContext) onLost();
      throw error;
    }
    if (generation > 1) onRestored();
  }

  /** Notes the first prompt behind the context. Gives whether it repeats what the user has said there last. */
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
