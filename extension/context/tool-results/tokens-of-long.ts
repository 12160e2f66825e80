/** A longer text is not counted whole: pi would stand still for it. UTF-16 units. */
export const maxCounted = 1_024 * 1_024;
/** What is counted of a longer one: its beginning and its end, each of so much. */
const sample = 64 * 1_024;

/** The tokens of a text that may be of any length. */
export function tokensOfLong(text: string, tokensOf: (text: string) => number): number {
  if (text.length <= maxCounted) return tokensOf(text);
  const sampled = tokensOf(text.slice(0, sample)) + tokensOf(text.slice(-sample));
  return Math.round((sampled * text.length) / (2 * sample));
}
