import { type Class, type Counts, classes } from "./counts.ts";

/** Bounds of a factor. */
const leastFactor = 0.5;
const greatestFactor = 2;

/** Factors of an unknown model. */
const prior: Readonly<Record<Class, number>> = {
  prose: 0.85,
  code: 0.8,
  data: 0.85,
  wide: 1,
  indent: 0.5,
  reasoning: 0.85,
  frame: 1,
  exact: 1,
};
const priors = Float64Array.from(classes, (name) => prior[name]);

/** The weight of the prior relative to one response that contains only the class. */
const priorWeight = 0.05;

/** The difference of two requests of a model: our counts and the reported tokens. */
interface Observation {
  readonly counts: Counts;
  readonly tokens: number;
}

/** Smaller differences are dominated by rounding. Tokens. */
const leastDifference = 24;
/** A larger deviation means that something else changed between the requests. */
const beyondBelief = 5;

/** Convergence limit of a round. */
const settled = 1e-6;

/** Models that are remembered. */
const maxModels = 64;

/** Learns for each model the factor of each class of text. */
export class Factors {
  readonly #window: () => number;
  readonly #models = new Map<string, { readonly seen: Observation[]; factors: Counts | undefined }>();

  /** `window`: the number of responses to learn from. */
  constructor(window: () => number) {
    this.#window = window;
  }

  /** The number of responses of the model that were learnt from. */
  seen(model: string): number {
    return this.#models.get(model)?.seen.length ?? 0;
  }

  /**
   * Returns whether the observation was accepted. `counts`: added minus removed text; `tokens`: the reported difference.
   */
  learn(model: string, counts: Counts, tokens: number): boolean {
    const expected = dot(counts, this.of(model));
    const size = sizeOf(counts);
    if (size < leastDifference || !Number.isFinite(tokens)) return false;
    if (Math.abs(tokens - expected) > beyondBelief * Math.max(size, leastDifference)) return false;
    if (expected > leastDifference && tokens <= 0) return false;
    const known = this.#models.get(model) ?? { seen: [], factors: undefined };
    known.seen.push({ counts, tokens });
    while (known.seen.length > this.#window()) known.seen.shift();
    known.factors = undefined;
    this.#models.delete(model);
    this.#models.set(model, known);
    const oldest = this.#models.keys().next().value;
    if (this.#models.size > maxModels && oldest !== undefined) this.#models.delete(oldest);
    return true;
  }

  of(model: string): Counts {
    const known = this.#models.get(model);
    if (known === undefined) return priors;
    known.factors ??= solve(known.seen);
    return known.factors;
  }
}

export function dot(counts: Counts, factors: Counts): number {
  let sum = 0;
  for (let at = 0; at < counts.length; at += 1) sum += (counts[at] as number) * (factors[at] as number);
  return sum;
}

function sizeOf(counts: Counts): number {
  return counts.reduce((sum, one) => sum + Math.abs(one), 0);
}

/**
 * Fits the factors to the reports by coordinate descent. Each report is weighted by its size, so that a large one does
 * not dominate; classes without a report keep the prior.
 */
function solve(seen: readonly Observation[]): Counts {
  const factors = Float64Array.from(priors);
  // `missed`: reported minus predicted tokens.
  const rows = seen.map(({ counts, tokens }) => ({
    counts,
    missed: tokens - dot(counts, factors),
    weight: 1 / sizeOf(counts) ** 1.5,
  }));
  const scale = rows.reduce((sum, { counts, weight }) => sum + sizeOf(counts) ** 2 * weight, 0) / rows.length;
  for (let round = 0; round < 50; round += 1) {
    let moved = 0;
    for (let at = 0; at < factors.length; at += 1) {
      const factor = factors[at] as number;
      let above = priorWeight * scale * (priors[at] as number);
      let below = priorWeight * scale;
      for (const { counts, missed, weight } of rows) {
        const count = counts[at] as number;
        above += weight * count * (missed + count * factor);
        below += weight * count * count;
      }
      const better = Math.min(greatestFactor, Math.max(leastFactor, above / below));
      factors[at] = better;
      moved = Math.max(moved, Math.abs(better - factor));
      for (const row of rows) row.missed -= (row.counts[at] as number) * (better - factor);
    }
    if (moved < settled) break;
  }
  return factors;
}

/** Factors by class name, for reports. */
export function namedFactors(factors: Counts): Readonly<Record<Class, number>> {
  const named = Object.fromEntries(classes.map((name, at) => [name, factors[at] ?? 1]));
  return named as Record<Class, number>;
}
