import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../extension/engine-port.ts";
import { defaultPruning } from "../../protocol/pruning/config.ts";
import { keptAudit } from "../parts/cache/auditor.ts";
import { windowContent } from "../parts/optimisation/window.ts";
import { BlockFold } from "./block-fold.ts";
import { BlockWriting } from "./block-writing.ts";
import { createBlocks } from "./blocks.ts";
import { createCacheLosses } from "./cache-losses.ts";
import { inspectionOf } from "./commands/inspection.ts";
import { addPruningMethods } from "./commands/methods.ts";
import { OpenChanges } from "./commands/open-changes.ts";
import { PruningCommands } from "./commands/pruning-commands.ts";
import { createCompressor } from "./compress/compressor.ts";
import { StoredBlocks } from "./compress/stored-blocks.ts";
import { addCompress } from "./compress/tool.ts";
import { addIds, keptIds } from "./ids.ts";
import { Legality } from "./legal.ts";
import { createMode } from "./mode.ts";
import { addCheckpoints } from "./native/checkpoints.ts";
import { addNativeCompaction, NativeCompaction, SummaryFailures } from "./native/native-compaction.ts";
import { addRequestLog, PruningNotifier } from "./notifier.ts";
import { createBreaker } from "./nudges/history.ts";
import { addNudges } from "./nudges/nudges.ts";
import { createPrompts } from "./prompts/prompts.ts";
import type { BlockTree, PruningServices, SharedServices } from "./pruning-services.ts";
import { Rendering } from "./rendering.ts";
import { addSection, pruningSection } from "./section.ts";
import { createStats } from "./stats.ts";
import { Announcements } from "./strategies/announcements.ts";
import { search } from "./strategies/search.ts";
import { addStrategies } from "./strategies/strategies.ts";
import { addStrip } from "./strip.ts";
import { createSwitch } from "./switch.ts";
import { addTags } from "./tags.ts";
import { WindowUsage } from "./usage.ts";

/** What pruning makes of the next request. Undefined: it is off for it. */
export interface PrunedWindow {
  blocks(ctx: ExtensionContext): BlockTree | undefined;
  /** Undefined also if they are not known. */
  tokens(ctx: ExtensionContext): number | undefined;
}

/** Composes the parts of pruning. Each part checks at each request whether pruning is on. */
export function addPruning(host: HostPort, shared: SharedServices): PrunedWindow {
  const { memory } = host;
  const audit = keptAudit(memory);
  const pruning = () => memory.parts?.pruning ?? defaultPruning;
  const notifier = new PruningNotifier(host, pruning);
  const { notify, debug } = notifier;
  const { off, conflict } = createSwitch(host, pruning);
  const prompts = createPrompts({
    directory: () => pruning().prompts.dir,
    configured: pruning,
    degraded: (message) => notify("pruning/degraded", { reason: "prompts", message: message.slice(0, 1_024) }),
  });
  const { histories, breaker } = createBreaker(pruning);
  const mode = createMode({ ...host, pruning, off });
  const isManual = (ctx: ExtensionContext): boolean => mode.of(ctx) === "manual";
  const base = { ...host, ...shared, notify, debug, pruning, off, conflict, prompts, mode, breaker };
  const legality = new Legality(base);
  legality.begin();
  const ids = addIds(base, keptIds(memory));
  const fold = new BlockFold();
  const blocks = createBlocks(base, { fold, rendering: new Rendering(base), writing: new BlockWriting(base, fold) });
  const windowUsage = new WindowUsage({ ...base, blocks });
  const usage = (ctx: ExtensionContext) => windowUsage.next(ctx);
  const services: PruningServices = { ...base, ids, blocks, usage };
  const compressor = createCompressor(services);
  const candidates = (ctx: ExtensionContext) => compressor.candidates(ctx);
  const strategies = addStrategies(base, services, {
    told: new Announcements(base),
    find: (order, scene, ctx) => search(services, order, scene, ctx),
    isManual,
  });
  addCompress(base, base, { stored: new StoredBlocks(services), compressor, host: services });
  addTags({ ...base, ids });
  addStrip({ ...base, ids, blocks });
  addNudges(base, services, { histories, windowUsage, candidates });
  addSection(base);
  addNativeCompaction(services, new NativeCompaction(services, new SummaryFailures(services)));
  addCheckpoints(services);
  const stats = createStats(services, {
    section: (ctx) =>
      off(ctx) === undefined ? pruningSection(prompts.text(isManual(ctx) ? "manual" : "system")) : undefined,
    echoes: (ctx) => {
      const { removed, bare } = ids.echoes(ctx);
      return removed + bare;
    },
    losses: createCacheLosses(base, audit),
  });
  addRequestLog(services);
  const window: PrunedWindow = {
    blocks: (ctx) => (off(ctx) === undefined ? blocks.on(ctx) : undefined),
    tokens: (ctx) => (off(ctx) === undefined ? usage(ctx)?.tokens : undefined),
  };
  const content = (ctx: ExtensionContext) =>
    windowContent(host, { estimator: shared.estimator, blocks: window.blocks, pruned: window.tokens }, ctx);
  const inspect = (ctx: ExtensionContext) =>
    inspectionOf(services, { mode: mode.of(ctx), candidates: () => candidates(ctx), content }, ctx);
  const changes = new OpenChanges(services);
  const commands = new PruningCommands(services, { mode, strategies, compressor, stats, inspect, changes });
  addPruningMethods(base, commands, notifier);
  // After all parts that change messages.
  legality.verify();
  return window;
}
