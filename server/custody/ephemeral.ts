import { WireError } from "../../protocol/errors.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import type { SessionState } from "../core/session-state.ts";
import type { StoredSession } from "../store/stored-session.ts";

/** Whether the conversation was in the memory of a pi that has ended: the only pi of its session. */
function isLost(stored: Ephemeral, { kind }: SessionState): boolean {
  const hasHadPi = stored.generation > 0 && kind !== "starting" && kind !== "idle" && kind !== "running";
  return isInMemoryAlone(stored) && hasHadPi;
}

/** Whether nothing survives its pi. With a context, another pi can continue. */
export function isInMemoryAlone({ ephemeral, context }: Pick<StoredSession, "ephemeral" | "context">): boolean {
  return ephemeral === true && context === undefined;
}

/** The error for a caller that needs a pi, if none is possible. */
export function lossOf(stored: StoredSession, state: SessionState): WireError | undefined {
  if (!isLost(stored, state)) return undefined;
  const { sessionId } = stored;
  const why = `The session ${sessionId} was kept in its pi's memory alone, and that pi has ended.`;
  return new WireError("session_lost", `${why} Close it, and create another one.`, { sessionId });
}

/** Throws `session_file_unusable` for operations that need a file. */
export function requireFile<T extends { info(): SessionInfo }>(session: T): T {
  const { sessionId, ephemeral } = session.info();
  if (ephemeral === undefined) return session;
  throw new WireError(
    "session_file_unusable",
    `The session ${sessionId} is kept only in its pi's memory, without a file.`,
    {
      sessionId,
      reason: "ephemeral",
    },
  );
}

type Ephemeral = Pick<StoredSession, "ephemeral" | "generation" | "context">;
