import { type Mistake, schemaMistakes } from "../configuration/mistakes.ts";
import type { OptimisationConfig } from "./config.ts";
import { absentTools, contradictionsIn, contradictionsOf, type GivenTools, lackingRecall } from "./contradictions.ts";
import { OptimisationOptions, optimisationWords } from "./options.ts";
import { mergeOptimisation, resolveOptimisation } from "./resolve.ts";

const place = ["optimisation"];

/** The bytes of a whole configuration as JSON: it goes to pi with what else a pi is started with. */
export const MAX_OPTIMISATION_BYTES = 128 * 1024;

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
    ...tooLarge(config),
  ];
  return { merged, config, mistakes };
}

function tooLarge(config: OptimisationConfig): Mistake[] {
  const bytes = new TextEncoder().encode(JSON.stringify(config)).length;
  if (bytes <= MAX_OPTIMISATION_BYTES) return [];
  return [{ place, why: `its ${bytes} bytes of JSON are more than ${MAX_OPTIMISATION_BYTES}` }];
}
