import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import { messageOf } from "../../../extension/pi-types.ts";
import { addCost } from "../../cost/cost.ts";
import { addPruning } from "../../pruning/pruning.ts";
import { addCache } from "../cache/cache.ts";
import { createCacheRule } from "../cache/cache-rule.ts";
import { CompactionAdviser } from "../compaction/advice.ts";
import { addCompaction } from "../compaction/compaction.ts";
import { createEstimator } from "../estimator/estimator.ts";
import { createRequestEntries } from "../map/request-entries.ts";
import { addMasking } from "../masking/masking.ts";
import { addFormat } from "../prompt/format.ts";
import { addPrompt } from "../prompt/prompt.ts";
import { createRecall } from "../recall/recall.ts";
import { addToolResults } from "../tool-results/tool-results.ts";
import { addDynamicTools } from "../tools/dynamic-tools.ts";
import { inspection } from "./inspection.ts";
import { configOf, type PartContext, type PartName, PartStates } from "./part-context.ts";

/** Puts the parts of the optimisation in their host. Each looks at its own switch at every turn. */
export function optimisation(host: HostPort): void {
  const states = new PartStates(host);
  const estimator = createEstimator({
    host,
    config: () => configOf(host).estimator,
    inspect: (part, report) => states.inspect(part, report),
    degraded: (part, reason) => states.degraded(part, reason),
  });
  const context: PartContext = {
    ...host,
    config: () => configOf(host),
    recall: createRecall(host),
    entries: createRequestEntries(host, {
      ambiguous: () => states.degraded("masking", "The messages of a request cannot be told from each other."),
      clear: () => states.restored("masking"),
    }),
    compactionAdvice: new CompactionAdviser(),
    estimator,
    cacheRule: createCacheRule(host),
    inspect: (part, report) => states.inspect(part, report),
    degraded: (part, reason, figures) => states.degraded(part, reason, figures),
    restored: (part) => states.restored(part),
  };
  const inspected = {
    estimator,
    report: (part: PartName, ctx: ExtensionContext) => states.report(part, ctx),
    figures: (part: PartName, ctx: ExtensionContext) => states.figures(part, ctx),
    masked: (ctx: ExtensionContext) => context.recall.masked(ctx),
  };
  host.answer("optimisation/inspect", (_params, ctx) => inspection(host, inspected, ctx));
  for (const [parts, add] of adders) {
    try {
      add(context);
    } catch (thrown) {
      // The others do what they can without it.
      host.fault("parts", thrown);
      const reason = `It could not be put into its place: ${messageOf(thrown)}`.slice(0, 1_024).toWellFormed();
      for (const part of parts) states.degraded(part, reason);
    }
  }
}

/** In this order: where several parts share a stage, it is that of their additions. */
const adders: readonly (readonly [parts: readonly PartName[], add: (context: PartContext) => void])[] = [
  [["toolResults"], addToolResults],
  [["masking"], addMasking],
  [["cost"], addCost],
  // Makes the sections that the cache's parts look at and rewrite.
  [["contextFiles", "skills"], addPrompt],
  [["cache"], addCache],
  [["compaction"], addCompaction],
  [["dynamicTools"], addDynamicTools],
  // Its section is the last of those that parts add.
  [[], addPruning],
  // The last of those that write sections: the others look for their tags.
  [["format"], addFormat],
];
