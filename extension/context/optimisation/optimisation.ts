import { addCost } from "../../cost/cost.ts";
import type { Places } from "../../engine-port.ts";
import { addCache } from "../cache/cache.ts";
import { createCacheRule } from "../cache/cache-rule.ts";
import { createEstimator } from "../estimator/estimator.ts";
import { createRequestEntries } from "../map/request-entries.ts";
import { addMasking } from "../masking/masking.ts";
import { createRecall } from "../recall/recall.ts";
import { addToolResults } from "../tool-results/tool-results.ts";
import { configOf, PartStates, type Workbench } from "./workbench.ts";

/** Puts the parts of the optimisation in their places. Each looks at its own switch at every turn. */
export function optimisation(places: Places): void {
  const states = new PartStates(places);
  const estimator = createEstimator({
    places,
    config: () => configOf(places).estimator,
    inspect: (part, report) => states.inspect(part, report),
  });
  const bench: Workbench = {
    ...places,
    config: () => configOf(places),
    recall: createRecall(places),
    entries: createRequestEntries(places, {
      ambiguous: () => states.degraded("masking", "The messages of a request cannot be told from each other."),
      clear: () => states.restored("masking"),
    }),
    estimator,
    cacheRule: createCacheRule(places, estimator),
    inspect: (part, report) => states.inspect(part, report),
    degraded: (part, reason, figures) => states.degraded(part, reason, figures),
    restored: (part) => states.restored(part),
  };
  addToolResults(bench);
  addMasking(bench);
  addCost(bench);
  addCache(bench);
}
