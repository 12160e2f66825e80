/** A match in a text, in UTF-16 units. */
export interface Match {
  readonly start: number;
  readonly length: number;
}

/** A part of a text around a match. */
export interface Excerpt {
  readonly excerpt: string;
  readonly matchStart: number;
  readonly matchLength: number;
  readonly isCutAtStart?: true;
  readonly isCutAtEnd?: true;
}

const excerptBefore = 80;
const excerptAfter = 160;

/** A text that is searched for, in any case: by simple case folding, which ECMAScript does with the flags `iu`. */
export class Literal {
  readonly #pattern: RegExp;
  readonly #hint: RegExp | undefined;
  readonly #doubts: readonly string[];

  constructor(query: string) {
    this.#pattern = new RegExp(escaped(query), "iu");
    const run = longestPlainRun(query);
    this.#hint = run === "" ? undefined : new RegExp(escaped(run), "i");
    this.#doubts = [
      "\\u",
      // The long s and the Kelvin sign, in UTF-8.
      ...(/s/i.test(run) ? ["\u00c5\u00bf"] : []),
      ...(/k/i.test(run) ? ["\u00e2\u0084\u00aa"] : []),
    ];
  }

  /**
   * Whether a text of a line of JSON can have a match, so that the line must be parsed. `line` has a character for each
   * byte. It only looks for the longest part of the query that JSON writes as it is.
   */
  mayBeIn(line: string): boolean {
    return (
      this.#hint === undefined || this.#hint.test(line) || this.#doubts.some((doubtful) => line.includes(doubtful))
    );
  }

  /** The first match. */
  in(text: string): Match | undefined {
    const found = this.#pattern.exec(text);
    return found === null ? undefined : { start: found.index, length: found[0].length };
  }
}

/** The part of a text around a match. It begins and ends at characters. */
export function excerptOf(text: string, { start, length }: Match): Excerpt {
  const from = boundaryAt(text, Math.max(0, start - excerptBefore), 1);
  const to = boundaryAt(text, Math.min(text.length, start + length + excerptAfter), -1);
  return {
    excerpt: text.slice(from, to),
    matchStart: start - from,
    matchLength: length,
    ...(from > 0 && { isCutAtStart: true }),
    ...(to < text.length && { isCutAtEnd: true }),
  };
}

function boundaryAt(text: string, at: number, step: 1 | -1): number {
  const isWithinPair = /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(0, at - 1), at + 1));
  return isWithinPair ? at + step : at;
}

function escaped(text: string): string {
  return text.replace(/[$()*+./?[\\\]^{|}]/g, "\\$&");
}

/** Of ASCII characters that JSON need not escape. */
function longestPlainRun(query: string): string {
  const runs = query.match(/[ !#-.0-[\]-~]+/g) ?? [];
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), "");
}
