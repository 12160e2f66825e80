/** The value below which the given share of all values lies. `values` need not be sorted. */
export function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(values).sort();
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] as number;
}

export function median(values: ArrayLike<number>): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * Per repetition, so that both sides of a ratio were measured close in time. Throws if they are the same measurement or
 * one has more repetitions.
 */
export function ratios(over: readonly number[], under: readonly number[]): readonly number[] {
  if (over === under || over.length !== under.length) throw new Error("A ratio needs two sides, measured in turns.");
  return over.map((value, i) => value / (under[i] as number));
}

/** Per repetition: the cost of each further one, when `more` has this many more than `base`. */
export function marginal(base: readonly number[], more: readonly number[], further: number): readonly number[] {
  return more.map((cost, i) => (cost - (base[i] ?? Number.NaN)) / further);
}

/**
 * Runs the measurements in turns, A B C A B C, so that a slowdown of the machine affects all of them. The first turn
 * is a warm-up and is dropped.
 */
export async function interleave<K extends string>(
  repetitions: number,
  measurements: Readonly<Record<K, () => Promise<number>>>,
): Promise<Readonly<Record<K, readonly number[]>>> {
  const names = Object.keys(measurements) as K[];
  const values = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
  for (let turn = 0; turn <= repetitions; turn += 1) {
    for (const name of names) {
      const value = await measurements[name]();
      if (turn > 0) values[name].push(value);
    }
  }
  return values;
}
