/** Deeper values are not shown while they stream. */
const maxDepth = 64;

/** The value of a JSON text that is not complete yet, as far as it is known. Undefined: nothing is known. */
export function partialJson(text: string): unknown {
  const scan = scanned(text);
  return scan === undefined ? undefined : (parsed(scan.whole) ?? parsed(scan.safe));
}

interface Scan {
  /** The text with its open string and brackets closed. */
  readonly whole: string;
  /** The text up to its last complete member, with its brackets closed. */
  readonly safe: string;
}

/** A string, whose closing quote can be missing, or a character of JSON's structure. */
const token = /"(?:[^"\\]+|\\u[\da-fA-F]{4}|\\[^u])*("?)|[{}[\],]/g;

function scanned(text: string): Scan | undefined {
  const closers: string[] = [];
  let safe = "";
  for (const { 0: found, 1: quote, index } of text.matchAll(token)) {
    const end = index + found.length;
    if (quote === "") return { whole: `${text.slice(0, end)}"${closing(closers)}`, safe };
    if (found === "{" || found === "[") {
      if (closers.length === maxDepth) return undefined;
      closers.push(found === "{" ? "}" : "]");
      safe = text.slice(0, end) + closing(closers);
    } else if (found === "}" || found === "]") closers.pop();
    else if (found === ",") safe = text.slice(0, index) + closing(closers);
  }
  return { whole: text + closing(closers), safe };
}

function closing(closers: readonly string[]): string {
  return closers.toReversed().join("");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
