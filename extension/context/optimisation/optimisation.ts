import type { Places } from "../../engine-port.ts";
import { createEstimator } from "../estimator/estimator.ts";
import { addDynamicTools } from "../tools/dynamic-tools.ts";
import { configOf, PartStates, type Workbench } from "./workbench.ts";

/** Puts the parts of the optimisation in their places. Each looks at its own switch at every turn. */
export function optimisation(places: Places): void {
  const states = new PartStates(places);
  const bench: Workbench = {
    ...places,
    config: () => configOf(places),
    estimator: createEstimator(),
    cacheRule: {
      decide: () => ({ act: true, why: "no_price", costUsd: 0, savedUsdPerRequest: 0 }),
      minBatchTokens: () => bench.config().cache.minBatchTokens,
      changed: () => {},
    },
    inspect: (part, report) => states.inspect(part, report),
    degraded: (part, reason, figures) => states.degraded(part, reason, figures),
    restored: (part) => states.restored(part),
  };
  addDynamicTools(bench);
}
