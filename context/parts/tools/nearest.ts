const maxLength = 128;

/** Returns the most similar names, nearest first. */
export function nearestNames(name: string, names: readonly string[], count = 3): string[] {
  const wanted = name.slice(0, maxLength).toLowerCase();
  const scored = names.map((other) => ({ other, away: distance(wanted, other.slice(0, maxLength).toLowerCase()) }));
  return scored
    .sort((one, next) => one.away - next.away || (one.other < next.other ? -1 : 1))
    .slice(0, count)
    .map(({ other }) => other);
}

/** Edit distance as a share of the longer name; smaller if one name contains the other. */
function distance(one: string, other: string): number {
  const longer = Math.max(one.length, other.length, 1);
  const isPart = one.length > 2 && (other.includes(one) || one.includes(other));
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + Number(one[i - 1] !== other[j - 1]);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return ((row[other.length] ?? longer) / longer) * (isPart ? 0.5 : 1);
}
