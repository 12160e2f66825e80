/** Longer words are not compared, because untrusted input can have any length. */
const maxLength = 64;

/**
 * Returns the known word most similar to an unknown one, within a maximum number of changes. `undefined`: none, or the
 * word is too long.
 */
export function nearest(word: string, known: readonly string[], within = Number.POSITIVE_INFINITY): string | undefined {
  if (word.length > maxLength) return undefined;
  const asked = word.toLowerCase();
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const distance = distanceOf(asked, name.toLowerCase());
    if (distance <= within && (best === undefined || distance < best.distance)) best = { name, distance };
  }
  return best?.name;
}

/** Number of letters to insert, delete, change or swap with a neighbour. A prefix counts as near. */
function distanceOf(one: string, other: string): number {
  if (other.startsWith(one) || one.startsWith(other)) return Math.min(2, Math.abs(one.length - other.length));
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const changed = (row[j - 1] as number) + (isSame ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const swapped = isSwapped ? (before[j - 2] as number) + 1 : changed;
      next.push(Math.min(changed, swapped, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    before = row;
    row = next;
  }
  return row[other.length] as number;
}
