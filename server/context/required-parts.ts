import { WireError } from "../../protocol/errors.ts";
import { resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { resolvePruning } from "../../protocol/pruning/resolve.ts";
import type { StoredSession } from "../store/stored-session.ts";

// Refusals that follow from a session's configuration, so that no pi is started.

/** Throws `pruning_disabled`. */
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

/** Throws `unsupported_by_pi`. */
export function requireCacheAudit({ options }: StoredSession): void {
  const { cache } = resolveOptimisation(options.optimisation ?? {});
  if (!cache.enabled || !cache.audit) {
    throw new WireError("unsupported_by_pi", 'The part "cache" is off in this session.');
  }
}
