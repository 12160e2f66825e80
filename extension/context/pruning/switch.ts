import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningConfig } from "../../../protocol/pruning/config.ts";

/** Whether anything is done in this request, and why not. */
export function createSwitch(pruning: () => PruningConfig): (ctx: ExtensionContext) => string | undefined {
  return () => (pruning().enabled ? undefined : "Pruning is off for this session.");
}
