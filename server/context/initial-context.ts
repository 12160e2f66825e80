import type { ContextError } from "../../protocol/context-option.ts";
import type { WireError } from "../../protocol/errors.ts";
import type { SessionContext } from "../core/session-context.ts";
import type { Child } from "../pi/child.ts";
import type { StoredSession } from "../store/stored-session.ts";
import { LostContext } from "./kept-files.ts";
import { sumOfText } from "./work.ts";

/** Sends a session's initial context to a child that has just started. */
export interface ContextTransport {
  /** Throws `context_transport_failed`, `overloaded`, `child_exited` or the signal's reason. */
  give(child: Child, stored: StoredSession, signal: AbortSignal): Promise<void>;
}

/** The context with which a session began. */
export class InitialContext {
  readonly #session: SessionContext;
  readonly #transport: ContextTransport;
  #error: ContextError | undefined;

  constructor(session: SessionContext, transport: ContextTransport) {
    this.#session = session;
    this.#transport = transport;
  }

  /** Why the session has no context, if it was created with one. */
  get error(): ContextError | undefined {
    return this.#error;
  }

  /** The session starts without its context. */
  failed({ code, message, data, kind }: WireError): void {
    this.#error = { code, message, data };
    this.#session.journal.say("context/failed", { error: this.#error });
    this.#session.log.warn({ error: kind }, "a session started without its context");
  }

  /**
   * Sends the context to a pi that has just started: that of an ephemeral session has no history. Ends that pi if it
   * fails, and throws `context_transport_failed`, `overloaded`, `child_exited` or the signal's reason.
   */
  async give(child: Child, generation: number, signal: AbortSignal): Promise<void> {
    const { record, events } = this.#session;
    if (record.stored.context?.kept === undefined) return;
    try {
      await this.#transport.give(child, record.stored, signal);
    } catch (error) {
      await child.stop();
      await child.cleaned;
      // After any other error, the next pi may accept it.
      if (error instanceof LostContext) events.emit("contextLost");
      throw error;
    }
    if (generation > 1) events.emit("changed", { restored: true });
  }

  /** Records the first prompt after the context. Returns whether it repeats the last message of the user there. */
  promptGiven(text: string): boolean {
    const { record } = this.#session;
    const { context } = record.stored;
    if (context?.unanswered === undefined) return false;
    const isRepeated = context.unanswered === sumOfText(text);
    const { unanswered: _unanswered, summary, ...rest } = context;
    const warnings = isRepeated ? [...summary.warnings, "duplicate_prompt" as const] : summary.warnings;
    record.givenContext({ ...rest, summary: { ...summary, warnings } });
    return isRepeated;
  }
}
