import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { defaultPruning } from "../../protocol/pruning/config.ts";
import type { PartContext } from "../parts/optimisation/part-context.ts";
import { createBlocks } from "./blocks.ts";
import { createCacheLosses } from "./cache-losses.ts";
import { addPruningMethods } from "./commands/methods.ts";
import { addCompress } from "./compress/add.ts";
import { createCompressor } from "./compress/compressor.ts";
import { addIds } from "./ids.ts";
import { Legality } from "./legal.ts";
import { createMode } from "./mode.ts";
import { addNativeCompaction } from "./native/native-compaction.ts";
import { PruningNotifier } from "./notifier.ts";
import { createBreaker } from "./nudges/breaker.ts";
import { addNudges } from "./nudges/nudges.ts";
import { createPrompts } from "./prompts/prompts.ts";
import type { PruningContext } from "./pruning-context.ts";
import { addRequestLog } from "./request-log.ts";
import { addSection, pruningSection } from "./section.ts";
import { createStats } from "./stats.ts";
import { addStrategies } from "./strategies/strategies.ts";
import { addStrip } from "./strip.ts";
import { createSwitch } from "./switch.ts";
import { addTags } from "./tags.ts";
import { WindowUsage } from "./usage.ts";

/** Puts the parts of pruning in their host. Each looks at each request whether pruning is on. */
export function addPruning(host: PartContext): void {
  const pruning = () => host.memory.parts?.pruning ?? defaultPruning;
  const notifier = new PruningNotifier(host, pruning);
  const notifying = { ...host, notify: notifier.notify, debug: notifier.debug };
  const { off, conflict } = createSwitch(notifying, pruning);
  const prompts = createPrompts({
    directory: () => pruning().prompts.dir,
    configured: pruning,
    degraded: (message) =>
      notifying.notify("pruning/degraded", { reason: "prompts", message: message.slice(0, 1_024) }),
  });
  const { histories, breaker } = createBreaker(pruning);
  const mode = createMode({ ...notifying, pruning, off });
  const base = { ...notifying, pruning, off, conflict, prompts, mode, breaker };
  const legality = new Legality(base);
  legality.begin();
  const ids = addIds(base);
  const blocks = createBlocks(base);
  const windowUsage = new WindowUsage({ ...base, blocks });
  const usage = (ctx: ExtensionContext) => windowUsage.next(ctx);
  const context: PruningContext = { ...base, ids, blocks, usage };
  const compressor = createCompressor(context);
  const strategies = addStrategies({ ...context, isManual: (ctx) => mode.of(ctx) === "manual" });
  addCompress(context, compressor);
  addTags({ ...base, ids });
  addStrip({ ...base, ids, blocks });
  addNudges(context, { histories, windowUsage, candidates: (ctx) => compressor.candidates(ctx) });
  addSection(context);
  addNativeCompaction(context);
  const stats = createStats(context, {
    section: (ctx) =>
      off(ctx) === undefined
        ? pruningSection(prompts.text(mode.of(ctx) === "manual" ? "manual" : "system"))
        : undefined,
    echoes: (ctx) => {
      const { removed, bare } = ids.echoes(ctx);
      return removed + bare;
    },
    losses: createCacheLosses(context),
  });
  addRequestLog(context);
  addPruningMethods(context, { mode, strategies, compressor, stats }, notifier);
  // After all parts that change messages.
  legality.verify();
}
