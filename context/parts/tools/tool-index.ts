import type { Synonyms } from "./synonyms.ts";
import { wordsOf } from "./words.ts";

/** The searchable texts of a tool. */
export interface SearchableTool {
  readonly name: string;
  readonly description: string;
  /** Names and descriptions of its parameters. */
  readonly parameters: string;
  /** Name and description of its group. */
  readonly group?: string;
}

interface Document {
  readonly name: string;
  readonly counts: ReadonlyMap<string, number>;
  readonly length: number;
}

/** Weight of a word by field. */
const weights = { name: 3, description: 1, parameters: 0.5, group: 0.5 } as const;
/** Weight of a synonym relative to the word itself. */
const synonymWeight = 0.45;
/** The usual values of Okapi BM25. */
const k1 = 1.2;
const b = 0.75;
const maxQueryWords = 64;

/** Finds tools by the words of a task: BM25 over names, descriptions and parameters. */
export class ToolIndex {
  readonly #documents: readonly Document[];
  readonly #frequencies = new Map<string, number>();
  readonly #meanLength: number;
  readonly #synonyms: Synonyms;

  constructor(tools: readonly SearchableTool[], synonyms: Synonyms) {
    this.#synonyms = synonyms;
    this.#documents = tools.map(documentOf);
    for (const { counts } of this.#documents) {
      for (const word of counts.keys()) this.#frequencies.set(word, (this.#frequencies.get(word) ?? 0) + 1);
    }
    const total = this.#documents.reduce((sum, { length }) => sum + length, 0);
    this.#meanLength = total / Math.max(1, this.#documents.length) || 1;
  }

  /** Returns the names of the best matches, best first. Tools without any word of the query are omitted. */
  search(query: string, limit: number): string[] {
    const terms = [...new Set(wordsOf(query))].slice(0, maxQueryWords);
    const scored = this.#documents.map((document) => ({ name: document.name, score: this.#score(document, terms) }));
    const found = scored.filter(({ score }) => score > 0);
    return found
      .sort((one, other) => other.score - one.score || compare(one.name, other.name))
      .slice(0, limit)
      .map(({ name }) => name);
  }

  #score(document: Document, terms: readonly string[]): number {
    let score = 0;
    for (const term of terms) {
      let best = this.#weightOf(document, term);
      // A word and its synonyms count once, by the best of them.
      for (const other of this.#synonyms.of(term)) {
        best = Math.max(best, synonymWeight * this.#weightOf(document, other));
      }
      score += best;
    }
    return score;
  }

  #weightOf({ counts, length }: Document, term: string): number {
    const count = counts.get(term);
    if (count === undefined) return 0;
    const having = this.#frequencies.get(term) ?? 0;
    const rarity = Math.log(1 + (this.#documents.length - having + 0.5) / (having + 0.5));
    return (rarity * count * (k1 + 1)) / (count + k1 * (1 - b + (b * length) / this.#meanLength));
  }
}

function documentOf(tool: SearchableTool): Document {
  const counts = new Map<string, number>();
  let length = 0;
  for (const [field, weight] of Object.entries(weights) as [keyof typeof weights, number][]) {
    for (const word of wordsOf(tool[field] ?? "")) {
      counts.set(word, (counts.get(word) ?? 0) + weight);
      length += weight;
    }
  }
  return { name: tool.name, counts, length };
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
