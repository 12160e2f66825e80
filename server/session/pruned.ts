import { WireError } from "../../protocol/errors.ts";
import { resolvePruning } from "../../protocol/pruning/resolve.ts";
import type { StoredSession } from "../store/sessions.ts";

/** Throws `pruning_disabled`. A pi is not started to say so. */
export function requirePruned(stored: StoredSession): void {
  const { enabled, childSessions } = resolvePruning(stored.options.pruning ?? {});
  if (!enabled) {
    const how = 'pruning/configure with {"enabled": true} turns it on';
    throw new WireError("pruning_disabled", `Pruning is off for this session; ${how}.`, { reason: "disabled" });
  }
  if (stored.delegatedBy === undefined || childSessions) return;
  const why = "it works on behalf of another one, and pruning.childSessions is false";
  throw new WireError("pruning_disabled", `Pruning is off for this session: ${why}.`, { reason: "child_session" });
}
