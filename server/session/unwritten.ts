import { hasPartOptions } from "../context/parts-config.ts";
import type { Registry } from "./registry.ts";

const quiet: ReadonlySet<string> = new Set(["hibernated", "idle", "crashed", "closed"]);

/**
 * Whether some session with parts may have put texts aside of which its file says nothing yet: a run is on, it is in its pi's
 * memory alone, or it is being made.
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
