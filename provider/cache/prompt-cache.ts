import { createHash } from "node:crypto";
import type { LogEntry } from "../log.ts";
import type { Usage } from "../reply.ts";
import { type ReadBlock, readingOf } from "./reading.ts";
import { loadVocabulary, type Vocabulary, type VocabularyName } from "./vocabulary.ts";

/** How the provider caches prompt prefixes, as real services do. */
export interface PromptCacheOptions {
  /**
   * When a request arrived, in milliseconds, on any clock that does not go back for a model. Default: the system's
   * clock.
   */
  readonly now?: (request: LogEntry) => number;
  /** How long a prefix is cached after its last use, in milliseconds. Default 300 000. */
  readonly lifetimeMs?: number;
  /** Shorter prefixes are not cached. Tokens. Default 1 024. */
  readonly leastTokens?: number;
  /** How many blocks before each mark are searched for a cached prefix. Anthropic only. Default 20. */
  readonly lookbackBlocks?: number;
  /** The vocabulary that counts tokens. Default `cl100k_base`. */
  readonly vocabulary?: VocabularyName;
}

const hourMs = 3_600_000;
/** OpenAI and Google match prefixes in steps of this many tokens. */
const stepTokens = 128;
const imageTokens = 1_200;
/** The maximum of cached prefixes; beyond it the least recently used ones are dropped. */
const maxKept = 200_000;

interface Arrival {
  /** The cached prefixes of one model. */
  readonly scope: string;
  readonly nowMs: number;
}

/** The tokens of a request that were read from the cache, and how many of its first tokens are cached now. */
interface Reading {
  readonly tokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
}

/**
 * Counts tokens and caches prompt prefixes. Anthropic caches what precedes a `cache_control` mark and reports what it
 * wrote; OpenAI and Google cache the longest common prefix automatically, and only report what they read.
 */
export class PromptCache {
  readonly #options: Required<PromptCacheOptions>;
  readonly #kept = new Map<string, number>();
  #vocabulary: Promise<Vocabulary> | undefined;

  constructor(options: PromptCacheOptions = {}) {
    this.#options = {
      now: Date.now,
      lifetimeMs: 300_000,
      leastTokens: 1_024,
      lookbackBlocks: 20,
      vocabulary: "cl100k_base",
      ...options,
    };
  }

  /** Returns the usage of an answered request. The next request can read its cached prefix. */
  async usageOf(request: LogEntry, written: string): Promise<Usage> {
    this.#vocabulary ??= loadVocabulary(this.#options.vocabulary);
    const vocabulary = await this.#vocabulary;
    const blocks = readingOf(request).map((block) => ({ block, tokens: tokensOf(block, vocabulary) }));
    const at = { scope: `${request.api} ${request.model ?? ""}`, nowMs: this.#options.now(request) };
    const { tokens, ...cache } =
      request.api === "anthropic" ? this.#readToMarks(at, blocks) : this.#readInSteps(at, blocks);
    return {
      ...cache,
      inputTokens: tokens - cache.cacheReadTokens - cache.cacheWriteTokens,
      outputTokens: vocabulary.encode(written).length,
      reasoningTokens: 0,
    };
  }

  #readToMarks({ scope, nowMs }: Arrival, blocks: readonly CountedBlock[]): Reading {
    let key = scope;
    let tokens = 0;
    const places = blocks.map(({ block, tokens: counted }) => {
      key = digest(`${key}\n${block.imageCount}\n${block.text}`);
      tokens += counted.length;
      return { key, tokens, mark: block.mark };
    });
    const marks = places.flatMap(({ mark }, at) => (mark === undefined ? [] : [at]));
    const { leastTokens, lookbackBlocks, lifetimeMs } = this.#options;
    const found = marks.flatMap((mark) =>
      places.slice(Math.max(0, mark - lookbackBlocks + 1), mark + 1).filter((place) => this.#isKept(place.key, nowMs)),
    );
    const read = found.reduce((longest, place) => (place.tokens > longest.tokens ? place : longest), noPlace);
    let marked = 0;
    for (const place of [read, ...marks.flatMap((at) => places[at] ?? [])]) {
      if (place.tokens < leastTokens) continue;
      marked = Math.max(marked, place.tokens);
      this.#keep(place.key, nowMs + (place.mark === "hour" ? hourMs : lifetimeMs));
    }
    return { tokens, cacheReadTokens: read.tokens, cacheWriteTokens: marked - read.tokens };
  }

  #readInSteps({ scope, nowMs }: Arrival, blocks: readonly CountedBlock[]): Reading {
    const all = blocks.flatMap(({ tokens }) => tokens);
    let key = scope;
    let cacheReadTokens = 0;
    let isKnown = true;
    for (let end = stepTokens; end <= all.length; end += stepTokens) {
      key = digest(`${key}\n${all.slice(end - stepTokens, end).join()}`);
      isKnown &&= this.#isKept(key, nowMs);
      if (isKnown && end >= this.#options.leastTokens) cacheReadTokens = end;
      if (all.length >= this.#options.leastTokens) this.#keep(key, nowMs + this.#options.lifetimeMs);
    }
    return { tokens: all.length, cacheReadTokens, cacheWriteTokens: 0 };
  }

  #isKept(key: string, nowMs: number): boolean {
    return (this.#kept.get(key) ?? 0) > nowMs;
  }

  #keep(key: string, untilMs: number): void {
    const longest = Math.max(this.#kept.get(key) ?? 0, untilMs);
    this.#kept.delete(key);
    this.#kept.set(key, longest);
    if (this.#kept.size <= maxKept) return;
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined) this.#kept.delete(oldest);
  }
}

interface CountedBlock {
  readonly block: ReadBlock;
  readonly tokens: readonly number[];
}

const noPlace = { key: "", tokens: 0, mark: undefined } as const;

function tokensOf({ text, imageCount }: ReadBlock, vocabulary: Vocabulary): readonly number[] {
  const tokens = vocabulary.encode(text);
  return imageCount === 0 ? tokens : [...tokens, ...Array<number>(imageCount * imageTokens).fill(-1)];
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
