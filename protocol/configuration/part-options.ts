import type { OptimisationConfig } from "../optimisation/config.ts";
import {
  absentTools,
  contradictionsIn,
  contradictionsOf,
  type GivenTools,
  lackingRecall,
} from "../optimisation/contradictions.ts";
import { OptimisationOptions, optimisationWords } from "../optimisation/options.ts";
import { mergeOptimisation, resolveOptimisation } from "../optimisation/resolve.ts";
import type { PruningConfig } from "../pruning/config.ts";
import { pruningContradictions } from "../pruning/contradictions.ts";
import type { PruningOptions } from "../pruning/options.ts";
import { mergePruning, resolvePruning } from "../pruning/resolve.ts";
import { pruningMistakes } from "../pruning/words.ts";
import { type Mistake, schemaMistakes } from "./mistakes.ts";
import { tooLarge } from "./whole.ts";

/** One layer's options of the parts inside a session's pi. */
export interface PartOptions {
  readonly optimisation?: OptimisationOptions | undefined;
  readonly pruning?: PruningOptions | undefined;
}

/** Merged layers. Options without any layer are absent. */
export interface MergedParts {
  readonly optimisation?: OptimisationOptions;
  readonly pruning?: PruningOptions;
}

export interface CheckedParts {
  readonly merged: MergedParts;
  readonly optimisation: OptimisationConfig;
  readonly pruning: PruningConfig;
  readonly mistakes: readonly Mistake[];
}

/** Merges layers and makes the checks that schemas cannot make. `own`: the layer that names tools of this session. */
export function checkedParts(
  layers: readonly (PartOptions | undefined)[],
  tools: GivenTools = {},
  own?: PartOptions,
): CheckedParts {
  const optimisation = checkedOptimisation(
    layers.map((layer) => layer?.optimisation),
    tools,
    own?.optimisation,
  );
  const pruning = checkedPruning(
    layers.map((layer) => layer?.pruning),
    optimisation.config.compaction,
  );
  return {
    merged: {
      ...(isEmpty(optimisation.merged) ? {} : { optimisation: optimisation.merged }),
      ...(isEmpty(pruning.merged) ? {} : { pruning: pruning.merged }),
    },
    optimisation: optimisation.config,
    pruning: pruning.config,
    mistakes: [...optimisation.mistakes, ...pruning.mistakes],
  };
}

function isEmpty(options: object): boolean {
  return Object.keys(options).length === 0;
}

/** The merged configuration of all layers, and its mistakes. */
interface CheckedOptimisation {
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
    ...schemaMistakes(OptimisationOptions, config, ["optimisation"], optimisationWords),
    ...layers.flatMap((layer) => (layer === undefined ? [] : contradictionsIn(layer))),
    ...contradictionsOf(config),
    ...(own === undefined ? [] : absentTools(own, tools)),
    ...lackingRecall(config, tools),
    ...tooLarge(["optimisation"], config),
  ];
  return { merged, config, mistakes };
}

/** The merged configuration of all layers, and its mistakes. */
interface CheckedPruning {
  /** The merged layers. */
  readonly merged: PruningOptions;
  readonly config: PruningConfig;
  readonly mistakes: readonly Mistake[];
}

/**
 * Merges layers that each match the schema, and makes the checks that schemas cannot make: contradictory limits,
 * including the threshold of compaction, and tables that have become too large.
 */
function checkedPruning(
  layers: readonly (PruningOptions | undefined)[],
  compaction: OptimisationConfig["compaction"],
): CheckedPruning {
  const merged = mergePruning(...layers);
  const config = resolvePruning(merged);
  const mistakes = [
    ...pruningMistakes(config),
    ...pruningContradictions(config, compaction),
    ...tooLarge(["pruning"], config),
  ];
  return { merged, config, mistakes };
}
