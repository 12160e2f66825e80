import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { defaultPruning } from "../../protocol/pruning/config.ts";
import type { Workbench } from "../parts/optimisation/workbench.ts";
import type { PruningBench } from "./bench.ts";
import { createBlocks } from "./blocks.ts";
import { createCacheLosses } from "./cache-losses.ts";
import { addCompress } from "./compress/add.ts";
import { createCompressor } from "./compress/compressor.ts";
import { addDesk } from "./desk/add-desk.ts";
import { addIds } from "./ids.ts";
import { Legality } from "./legal.ts";
import { createMode } from "./mode.ts";
import { addNativeCompaction } from "./native/native-compaction.ts";
import { createBreaker } from "./nudges/breaker.ts";
import { addNudges } from "./nudges/nudges.ts";
import { createPrompts } from "./prompts/prompts.ts";
import { addRequestLog } from "./request-log.ts";
import { addSection, pruningSection } from "./section.ts";
import { createStats } from "./stats.ts";
import { addStrategies } from "./strategies/strategies.ts";
import { addStrip } from "./strip.ts";
import { createSwitch } from "./switch.ts";
import { addTags } from "./tags.ts";
import { Teller } from "./teller.ts";
import { WindowUsage } from "./usage.ts";

/** Puts the parts of pruning in their places. Each looks at each request whether pruning is on. */
export function addPruning(places: Workbench): void {
  const pruning = () => places.memory.parts?.pruning ?? defaultPruning;
  const teller = new Teller(places, pruning);
  const bench = { ...places, notify: teller.notify, debug: teller.debug };
  const { off, conflict } = createSwitch(bench, pruning);
  const prompts = createPrompts({
    directory: () => pruning().prompts.dir,
    configured: pruning,
    degraded: (message) => bench.notify("pruning/degraded", { reason: "prompts", message: message.slice(0, 1_024) }),
  });
  const { histories, breaker } = createBreaker(pruning);
  const mode = createMode({ ...bench, pruning, off });
  const base = { ...bench, pruning, off, conflict, prompts, mode, breaker };
  const legality = new Legality(base);
  legality.begin();
  const ids = addIds(base);
  const blocks = createBlocks(base);
  const windowUsage = new WindowUsage({ ...base, blocks });
  const usage = (ctx: ExtensionContext) => windowUsage.next(ctx);
  const whole: PruningBench = { ...base, ids, blocks, usage };
  const compressor = createCompressor(whole);
  const strategies = addStrategies({ ...whole, isManual: (ctx) => mode.of(ctx) === "manual" });
  addCompress(whole, compressor);
  addTags({ ...base, ids });
  addStrip({ ...base, ids, blocks });
  addNudges(whole, { histories, windowUsage, candidates: (ctx) => compressor.candidates(ctx) });
  addSection(whole);
  addNativeCompaction(whole);
  const stats = createStats(whole, {
    section: (ctx) =>
      off(ctx) === undefined
        ? pruningSection(prompts.text(mode.of(ctx) === "manual" ? "manual" : "system"))
        : undefined,
    echoes: (ctx) => {
      const { removed, bare } = ids.echoes(ctx);
      return removed + bare;
    },
    losses: createCacheLosses(whole),
  });
  addRequestLog(whole);
  addDesk(whole, { mode, strategies, compressor, stats }, teller);
  // Behind all that change messages.
  legality.verify();
}
