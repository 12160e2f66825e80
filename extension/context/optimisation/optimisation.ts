import { addCost } from "../../cost/cost.ts";
import type { Places } from "../../engine-port.ts";
import { addCache } from "../cache/cache.ts";
import { createCacheRule } from "../cache/cache-rule.ts";
import { createEstimator } from "../estimator/estimator.ts";
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
    estimator,
    cacheRule: createCacheRule(places, estimator),
    inspect: (part, report) => states.inspect(part, report),
    degraded: (part, reason, figures) => states.degraded(part, reason, figures),
    restored: (part) => states.restored(part),
  };
  addCost(bench);
  addCache(bench);
}
