import { checkedOptimisation } from "../optimisation/check.ts";
import type { OptimisationConfig } from "../optimisation/config.ts";
import type { GivenTools } from "../optimisation/contradictions.ts";
import type { OptimisationOptions } from "../optimisation/options.ts";
import { checkedPruning } from "../pruning/check.ts";
import type { PruningConfig } from "../pruning/config.ts";
import type { PruningOptions } from "../pruning/options.ts";
import type { Mistake } from "./mistakes.ts";

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
