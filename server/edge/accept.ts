/**
 * Returns the offered media type that a request's `Accept` prefers, the first of equals; undefined if it accepts none.
 * A missing header accepts all. Unreadable ranges and qualities are ignored.
 */
export function accepted<T extends string>(accept: string | undefined, offered: readonly T[]): T | undefined {
  if (accept === undefined || accept === "*/*" || accept.trim() === "") return offered[0];
  const ranges = accept.toLowerCase().split(",").map(readRange);
  let best: T | undefined;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) {
      best = type;
      bestQuality = quality;
    }
  }
  return best;
}

interface Range {
  readonly type: string;
  readonly quality: number;
}

function readRange(text: string): Range {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim());
  const [, quality] =
    parameters.map((one) => /^q=([01](?:\.\d{0,3})?)$/.exec(one)).find((found) => found !== null) ?? [];
  return { type, quality: quality === undefined ? 1 : Math.min(1, Number(quality)) };
}

/** Returns the quality in the most specific range that matches. */
function qualityOf(type: string, ranges: readonly Range[]): number {
  const [main = ""] = type.split("/");
  for (const range of [type, `${main}/*`, "*/*"]) {
    const found = ranges.find((one) => one.type === range);
    if (found !== undefined) return found.quality;
  }
  return 0;
}
