import { type Mistake, schemaMistakes } from "../configuration/mistakes.ts";
import { tooLarge } from "../configuration/whole.ts";
import type { OptimisationConfig } from "./config.ts";
import { absentTools, contradictionsIn, contradictionsOf, type GivenTools, lackingRecall } from "./contradictions.ts";
import { OptimisationOptions, optimisationWords } from "./options.ts";
import { mergeOptimisation, resolveOptimisation } from "./resolve.ts";

const place = ["optimisation"];

/** The merged configuration of all layers, and its mistakes. */
export interface CheckedOptimisation {
  /** The merged layers. */
  readonly merged: OptimisationOptions;
  readonly config: OptimisationConfig;
  readonly mistakes: readonly Mistake[];
}

/**
 * Merges layers that each match the schema, and makes the checks that schemas cannot make: contradictory options, and
 * tables that have become too large. `own` is the layer that names tools of this session.
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
