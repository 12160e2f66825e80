import { WireError } from "../../protocol/errors.ts";
import { unlessAborted, within } from "../lib/deadline.ts";
import type { Child } from "../pi/child.ts";
import { exhaustion } from "../pi/exhaustion.ts";
import type { StoredSession } from "../store/stored-session.ts";
import type { ByteBudget } from "./byte-budget.ts";
import { helperLine } from "./helper-lines.ts";
import type { KeptContexts } from "./kept-files.ts";

export interface ContextDeliveryOptions {
  readonly kept: KeptContexts;
  readonly byteBudget: ByteBudget;
  readonly ackTimeoutMs: number;
}

/** Sends stored contexts to the pi of ephemeral sessions. */
export class ContextDelivery {
  readonly #options: ContextDeliveryOptions;

  constructor(options: ContextDeliveryOptions) {
    this.#options = options;
  }

  /**
   * Sends a session's context to a new pi before anything else. Throws `context_transport_failed`, or a {@link
   * LostContext} if no other pi can have it either; `overloaded` if the daemon has run out of a resource;
   * `child_exited`, and the signal's reason.
   */
  async give(child: Child, { sessionId, context, generation }: StoredSession, signal: AbortSignal): Promise<void> {
    if (context?.kept === undefined) return;
    const { ackTimeoutMs, kept, byteBudget } = this.#options;
    const sum = context.kept;
    const reservation = byteBudget.open();
    try {
      await reservation.take(sum.bytes, signal);
      // Only a creation fails as a whole. Later, another pi may accept it.
      const outcome = generation > 1 ? "its pi was ended" : "the session was closed";
      const given = child.link.sendContext(helperLine(await kept.get(sessionId, sum)));
      const reply = await unlessAborted(within(given, ackTimeoutMs), signal).catch((cause: unknown) => {
        throw signal.aborted ? signal.reason : failure(cause, outcome);
      });
      if (reply.kind === "timeout") {
        const why = `The extension did not confirm the context within ${ackTimeoutMs / 1_000} s; ${outcome}.`;
        throw new WireError("context_transport_failed", why, { reason: "timeout" });
      }
      if (reply.value.hash === context.summary.hash) return;
      throw new WireError("context_transport_failed", `The extension has another context; ${outcome}.`, {
        reason: "hash_mismatch",
      });
    } finally {
      reservation.release();
    }
  }
}

/**
 * The error for a context that could not be sent. A failure of the daemon's own disk or memory is not blamed on the
 * extension.
 */
function failure(cause: unknown, outcome: string): unknown {
  const isRefused = cause instanceof WireError && cause.kind === "link_failed";
  if (cause instanceof WireError && !isRefused) return cause;
  const code = isRefused ? undefined : (cause as NodeJS.ErrnoException | undefined)?.code;
  if (typeof code !== "string") {
    const why = `The extension rejected the context; ${outcome}.`;
    return new WireError("context_transport_failed", why, { reason: "refused" }, { cause });
  }
  const why = `The context could not be written for the extension (${code}); ${outcome}.`;
  return exhaustion(cause) ?? new WireError("context_transport_failed", why, { reason: code }, { cause });
}
