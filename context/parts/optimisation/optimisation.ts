import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import { messageOf } from "../../../extension/pi-types.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import { addCost } from "../../cost/cost.ts";
import { addPruning, type PrunedWindow } from "../../pruning/pruning.ts";
import { keptAudit } from "../cache/auditor.ts";
import { addCache } from "../cache/cache.ts";
import { createCacheRule } from "../cache/cache-rule.ts";
import { CompactionAdviser } from "../compaction/advice.ts";
import { addCompaction } from "../compaction/compaction.ts";
import { compactsAt } from "../compaction/threshold.ts";
import { createEstimator } from "../estimator/estimator.ts";
import { createRequestEntries } from "../map/request-entries.ts";
import { addMaskedCommands } from "../masking/commands.ts";
import { addMasking } from "../masking/masking.ts";
import { addFormat } from "../prompt/format.ts";
import { addPrompt } from "../prompt/prompt.ts";
import { keptCuts } from "../recall/pending-cuts.ts";
import { addPendingEdits, PendingEdits } from "../recall/pending-edits.ts";
import { createRecall } from "../recall/recall.ts";
import { addToolResults } from "../tool-results/tool-results.ts";
import { addDynamicTools, keptTools } from "../tools/dynamic-tools.ts";
import { inspection } from "./inspection.ts";
import { configOf, type PartName, PartStates } from "./part-states.ts";

/** Composes the parts of the optimisation. Each part checks its own switch at every turn. */
export function optimisation(host: HostPort): void {
  const { pi, memory, notify, fault, isUnanswered } = host;
  const config = (): OptimisationConfig => configOf(memory);
  const states = new PartStates({ config, notify, fault });
  const spillDirectory = (): string | undefined => memory.parts?.spillDirectory;
  const audit = keptAudit(memory);
  const cuts = keptCuts(memory);
  const estimator = createEstimator(host, { config: () => config().estimator, status: states.of("estimator") });
  const recall = createRecall(host, { pi, cuts, spillDirectory });
  const masking = states.of("masking");
  const entries = createRequestEntries(host, {
    ambiguous: () => masking.degraded("The messages of a request cannot be told from each other."),
    clear: () => masking.restored(),
  });
  const pending = new PendingEdits({ entries, isUnanswered });
  const cacheRule = createCacheRule({
    config,
    nextTokens: (ctx) => estimator.context(ctx),
    compactsAt: (ctx) => compactsAt(config().compaction, ctx),
  });
  const advice = new CompactionAdviser();

  let pruning: PrunedWindow | undefined;
  const inspected = {
    estimator,
    blocks: (ctx: ExtensionContext) => pruning?.blocks(ctx),
    pruned: (ctx: ExtensionContext) => pruning?.tokens(ctx),
    report: (part: PartName, ctx: ExtensionContext) => states.report(part, ctx),
    figures: (part: PartName, ctx: ExtensionContext) => states.figures(part, ctx),
    masked: (ctx: ExtensionContext) => recall.masked(ctx),
  };
  host.answer("optimisation/inspect", (_params, ctx) => inspection(host, inspected, ctx));

  /** Adds parts. If one cannot be added, the others work without it. */
  const add = (parts: readonly PartName[], addPart: () => void): void => {
    try {
      addPart();
    } catch (thrown) {
      fault("parts", thrown);
      const reason = `The part could not be added: ${messageOf(thrown)}`.slice(0, 1_024).toWellFormed();
      for (const part of parts) states.of(part).degraded(reason);
    }
  };
  // Parts that share a stage run in this order.
  add(["toolResults"], () =>
    addToolResults(host, {
      config: () => config().toolResults,
      recall,
      estimator,
      status: states.of("toolResults"),
      spillDirectory,
      cuts,
    }),
  );
  add([], () => addPendingEdits(host, { entries }, pending));
  add(["masking"], () => {
    addMasking(host, { pi, config: () => config().masking, recall, pending, cacheRule, estimator, status: masking });
    addMaskedCommands(host, { recall, entries });
  });
  add(["cost"], () => addCost(host, { pi, config: () => config().cost, status: states.of("cost"), notify, fault }));
  // Creates the sections that the cache's parts read and rewrite.
  add(["contextFiles", "skills"], () =>
    addPrompt(host, {
      pi,
      memory,
      config,
      estimator,
      status: { contextFiles: states.of("contextFiles"), skills: states.of("skills") },
      fault,
    }),
  );
  add(["cache"], () =>
    addCache(host, {
      config: () => config().cache,
      isPruning: () => memory.parts?.pruning?.enabled === true,
      audit,
      changes: cacheRule.changes,
      notify,
      status: states.of("cache"),
    }),
  );
  add(["compaction"], () =>
    addCompaction(host, {
      pi,
      config: () => config().compaction,
      estimator,
      advice,
      cacheRule,
      isUnanswered,
      status: states.of("compaction"),
    }),
  );
  add(["dynamicTools"], () =>
    addDynamicTools(host, {
      pi,
      config: () => config().dynamicTools,
      estimator,
      taken: keptTools(memory),
      status: states.of("dynamicTools"),
      fault,
    }),
  );
  // Its section is the last one that parts add.
  add([], () => {
    const compaction = () => config().compaction;
    pruning = addPruning(host, { estimator, cacheRule, recall, pending, entries, advice, compaction });
  });
  // The last part that writes sections, because the others search for their tags.
  add(["format"], () => addFormat(host, { config, estimator, status: states.of("format") }));
}
