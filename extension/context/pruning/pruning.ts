import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { defaultPruning } from "../../../protocol/pruning/config.ts";
import type { Workbench } from "../optimisation/workbench.ts";
import { createBlocks } from "./blocks.ts";
import { addIds } from "./ids.ts";
import { createPrompts } from "./prompts/prompts.ts";
import { addStrategies } from "./strategies/strategies.ts";
import { addStrip } from "./strip.ts";
import { createSwitch } from "./switch.ts";
import { addTags } from "./tags.ts";
import { WindowUsage } from "./usage.ts";

/** Puts the parts of pruning in their places. Each looks at each request whether pruning is on. */
export function addPruning(bench: Workbench): void {
  const pruning = () => bench.memory.parts?.pruning ?? defaultPruning;
  // In this order: switch (off), prompts, ids, blocks, usage; then strategies, the tool, tags, nudges, mode, section, compaction, commands.
  const { off, conflict } = createSwitch(bench, pruning);
  const prompts = createPrompts({
    directory: () => pruning().prompts.dir,
    degraded: (message) => bench.notify("pruning/degraded", { reason: "prompts", message: message.slice(0, 1_024) }),
  });
  const base = { ...bench, pruning, off, conflict, prompts };
  const ids = addIds(base);
  const blocks = createBlocks(base);
  const window = new WindowUsage(bench, pruning, blocks);
  const whole = { ...base, ids, blocks, usage: (ctx: ExtensionContext) => window.next(ctx) };
  addStrategies({ ...whole, isManual: () => pruning().manualMode.enabled });
  addTags({ ...base, ids });
  addStrip({ ...base, isIssued: (id, ctx) => ids.entryOf(id, ctx) !== undefined, removed: ids.removed });
}
