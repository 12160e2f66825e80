import { defaultPruning } from "../../../protocol/pruning/config.ts";
import type { Workbench } from "../optimisation/workbench.ts";
import { addStrategies } from "./strategies/strategies.ts";

/** Puts the parts of pruning in their places. Each looks at each request whether pruning is on. */
export function addPruning(bench: Workbench): void {
  const pruning = () => bench.memory.parts?.pruning ?? defaultPruning;
  // In this order: ids, blocks, switch (off), usage; then strategies, the tool, tags, nudges, mode, section, compaction, commands.
  const off = () => (pruning().enabled ? undefined : "Pruning is off for this session.");
  addStrategies({ ...bench, pruning, off });
}
