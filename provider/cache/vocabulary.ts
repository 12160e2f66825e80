/** The vocabulary that counts tokens. */
export type VocabularyName = "cl100k_base" | "o200k_base" | "r50k_base";

export interface Vocabulary {
  /** Returns the tokens of a text. Names of special tokens are plain text. */
  encode(text: string): readonly number[];
}

const loaders = {
  cl100k_base: () => import("gpt-tokenizer/encoding/cl100k_base"),
  o200k_base: () => import("gpt-tokenizer/encoding/o200k_base"),
  r50k_base: () => import("gpt-tokenizer/encoding/r50k_base"),
} as const;

/** The texts of a conversation recur in each request: this many are kept with their tokens. */
const keptTexts = 2_000;

/** Loads a vocabulary on first use, which takes about a tenth of a second. */
export async function loadVocabulary(name: VocabularyName): Promise<Vocabulary> {
  const { encode } = await loaders[name]();
  const known = new Map<string, readonly number[]>();
  return {
    encode: (text) => {
      const found = known.get(text);
      // Inserted again, so that the map's first entry is the least recently used one.
      if (found !== undefined) known.delete(text);
      const tokens = found ?? encode(text, { disallowedSpecial: new Set() });
      known.set(text, tokens);
      for (const oldest of known.size > keptTexts ? known.keys() : []) {
        known.delete(oldest);
        break;
      }
      return tokens;
    },
  };
}
