import { type Class, type Counts, classes } from "./counts.ts";

/** What a factor may be. */
const leastFactor = 0.5;
const greatestFactor = 2;

/** What is taken as long as nothing is known of a model. */
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

/** How much the prior weighs against one response that has nothing but the class. */
const priorWeight = 0.05;

/** What two requests of a model differ by, as we count it and as the service has. */
interface Observation {
  readonly counts: Counts;
  readonly tokens: number;
}

/** Differences of less say more of rounding than of the text. Tokens. */
const leastDifference = 24;
/** A service does not count so far from us: something else has changed between the two requests. */
const beyondBelief = 5;

/** Factors that move by less in a round are found. */
const settled = 1e-6;

/** Models that are remembered. */
const maxModels = 64;

/** Learns for each model by how much our counts of each class are to be multiplied. */
export class Factors {
  readonly #window: () => number;
  readonly #models = new Map<string, { readonly seen: Observation[]; factors: Counts | undefined }>();

  /** `window`: responses that the factors are learnt from. */
  constructor(window: () => number) {
    this.#window = window;
  }

  /** How many responses of the model have taught something. */
  seen(model: string): number {
    return this.#models.get(model)?.seen.length ?? 0;
  }

  /** Gives whether it was believed. `counts`: what has come less what has gone; `tokens`: the same as reported. */
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
 * The factors that miss the reports least, by coordinate descent: each weighs by its size, so that a large one does not
 * decide alone; what no report speaks of keeps the prior.
 */
function solve(seen: readonly Observation[]): Counts {
  const factors = Float64Array.from(priors);
  // `missed`: what is reported beyond what the factors say.
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

/** Named, for people. */
export function namedFactors(factors: Counts): Readonly<Record<Class, number>> {
  const named = Object.fromEntries(classes.map((name, at) => [name, factors[at] ?? 1]));
  return named as Record<Class, number>;
}
