import { hasPartOptions } from "../context/parts-config.ts";
import type { Registry } from "./registry.ts";

const quiet: ReadonlySet<string> = new Set(["hibernated", "idle", "crashed", "closed"]);

/**
 * Whether a session may have moved texts out that its file does not mention yet: a run is active, it exists only in
 * its pi's memory, or it is being created.
 */
export function isAnyUnwritten(registry: Registry): boolean {
  if (registry.isMaking) return true;
  return registry
    .all()
    .some(
      ({ stored: { options, ephemeral }, state }) =>
        hasPartOptions(options) && (ephemeral === true || !quiet.has(state.kind)),
    );
}
