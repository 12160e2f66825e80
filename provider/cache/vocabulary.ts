/** Which vocabulary tokens are counted by. */
export type VocabularyName = "cl100k_base" | "o200k_base" | "r50k_base";

export interface Vocabulary {
  /** The tokens of a text. Names of special tokens in it are text like any other. */
  encode(text: string): readonly number[];
}

const loaders = {
  cl100k_base: () => import("gpt-tokenizer/encoding/cl100k_base"),
  o200k_base: () => import("gpt-tokenizer/encoding/o200k_base"),
  r50k_base: () => import("gpt-tokenizer/encoding/r50k_base"),
} as const;

/** Texts of a conversation come again in each request: so many of them are kept with their tokens. */
const keptTexts = 2_000;

/** Loads a vocabulary; nothing of it is in memory before. Takes about a tenth of a second. */
export async function loadVocabulary(name: VocabularyName): Promise<Vocabulary> {
  const { encode } = await loaders[name]();
  const known = new Map<string, readonly number[]>();
  return {
    encode: (text) => {
      const found = known.get(text);
      // Set again, so that the oldest in the map is the one that was asked for longest ago.
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
