import { type Mistake, schemaMistakes } from "../configuration/mistakes.ts";
import { tooLarge } from "../configuration/whole.ts";
import type { OptimisationConfig } from "./config.ts";
import { absentTools, contradictionsIn, contradictionsOf, type GivenTools, lackingRecall } from "./contradictions.ts";
import { OptimisationOptions, optimisationWords } from "./options.ts";
import { mergeOptimisation, resolveOptimisation } from "./resolve.ts";

const place = ["optimisation"];

/** The whole configuration that layers come to, and what is wrong with it. */
export interface CheckedOptimisation {
  /** The layers, one over the other. */
  readonly merged: OptimisationOptions;
  readonly config: OptimisationConfig;
  readonly mistakes: readonly Mistake[];
}

/**
 * Brings layers together that are each as their schema says, and looks at what no schema can see: knobs that contradict, and
 * tables that have grown too large. `own` is the layer that names tools of this very session.
 */
export function checkedOptimisation(
  layers: readonly (OptimisationOptions | undefined)[],
  tools: GivenTools = {},
  own?: OptimisationOptions,
): CheckedOptimisation {
  const merged = mergeOptimisation(...layers);
  const config = resolveOptimisation(merged);
  const mistakes = [
    ...schemaMistakes(OptimisationOptions, config, place, optimisationWords),
    ...layers.flatMap((layer) => (layer === undefined ? [] : contradictionsIn(layer))),
    ...contradictionsOf(config),
    ...(own === undefined ? [] : absentTools(own, tools)),
    ...lackingRecall(config, tools),
    ...tooLarge(place, config),
  ];
  return { merged, config, mistakes };
}
