import { hash as digestOf } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { countText, textClasses } from "../../document/text-classes.ts";

/**
 * The classes of counted text. `reasoning`: services omit much of it. `frame`: overhead of messages and calls. `exact`:
 * texts counted by a tokenizer, which are in no other class.
 */
export const classes = [...textClasses, "reasoning", "frame", "exact"] as const;
export type Class = (typeof classes)[number];

/** Unlearnt tokens of each class, in the order of {@link classes}. */
export type Counts = Float64Array;

const reasoningAt = classes.indexOf("reasoning");
const frameAt = classes.indexOf("frame");
const exactAt = classes.indexOf("exact");

/** Tokens around a message, around a call, and around what pi writes for a command or a summary. */
const aroundMessage = 4;
const aroundCall = 8;
const aroundNative = 40;

/** Counting a shorter text is faster than a cache lookup. UTF-16 units. */
const shortText = 256;

export interface Counted {
  readonly counts: Counts;
  readonly images: number;
  /** Equal for equal content. */
  readonly key: string;
}

export function noCounts(): Counts {
  return new Float64Array(classes.length);
}

/** Adds a multiple of counts in place. */
export function addCounts(to: Counts, from: Counts, times = 1): void {
  for (let at = 0; at < to.length; at += 1) to[at] = (to[at] as number) + times * (from[at] as number);
}

/** Counts texts and messages, with a cache by content. */
export class Counter {
  readonly #byHash: LRUCache<string, Counts>;
  #byMessage = new WeakMap<object, Counted & { readonly of: unknown }>();

  /** `entries`: cached texts. */
  constructor(entries: number) {
    this.#byHash = new LRUCache({ max: entries });
  }

  get remembered(): number {
    return this.#byHash.size;
  }

  text(text: string): Counts {
    return text.length <= shortText ? countsOf(text) : this.#long(text, hashOf(text));
  }

  /** Counts are cached per object while its content is unchanged. */
  message(message: AgentMessage): Counted {
    const of = contentOf(message);
    const known = this.#byMessage.get(message);
    if (known !== undefined && known.of === of) return known;
    const counted = { ...this.#count(message), of };
    this.#byMessage.set(message, counted);
    return counted;
  }

  /** The long texts of messages that no tokenizer has counted yet, each with the hash that {@link learn} wants. */
  *uncounted(messages: Iterable<AgentMessage>): Generator<{ readonly hash: string; readonly text: string }> {
    for (const message of messages) {
      for (const text of new Parts(message).texts) {
        if (text.length <= shortText) continue;
        const hash = hashOf(text);
        if (((this.#byHash.peek(hash) ?? countsOf(text))[exactAt] as number) === 0) yield { hash, text };
      }
    }
  }

  /** Records a tokenizer's count for the text with this hash. */
  learn(hash: string, tokens: number): void {
    const counts = noCounts();
    counts[exactAt] = tokens;
    this.#byHash.set(hash, counts);
    this.#byMessage = new WeakMap();
  }

  #long(text: string, hash: string): Counts {
    const known = this.#byHash.get(hash);
    if (known !== undefined) return known;
    const counts = countsOf(text);
    this.#byHash.set(hash, counts);
    return counts;
  }

  #count(message: AgentMessage): Counted {
    const parts = new Parts(message);
    const counts = noCounts();
    const keys: string[] = [message.role];
    for (const text of parts.texts) {
      const hash = text.length <= shortText ? text : hashOf(text);
      addCounts(counts, text.length <= shortText ? countsOf(text) : this.#long(text, hash));
      keys.push(hash);
    }
    for (const text of parts.reasoning) {
      const long = text.length <= shortText ? countsOf(text) : this.#long(text, hashOf(text));
      for (const tokens of long) counts[reasoningAt] = (counts[reasoningAt] as number) + tokens;
    }
    counts[frameAt] = (counts[frameAt] as number) + parts.frame;
    return { counts, images: parts.images, key: `${keys.join("\0")}\0${parts.images}` };
  }
}

function countsOf(text: string): Counts {
  const byClass = countText(text);
  const counts = noCounts();
  for (const [at, name] of textClasses.entries()) counts[at] = byClass[name];
  return counts;
}

/** A hash of a text, and its length. */
function hashOf(text: string): string {
  return `${text.length}:${digestOf("sha1", text, "base64")}`;
}

/** The content whose identity shows that a message is unchanged. */
function contentOf(message: AgentMessage): unknown {
  const { content, summary, output, sections } = message as Readonly<Record<string, unknown>>;
  return content ?? summary ?? output ?? sections;
}

/** The parts of a message that services receive. Hostile messages can have any value in place of a text. */
class Parts {
  readonly texts: string[] = [];
  readonly reasoning: string[] = [];
  images = 0;
  frame = aroundMessage;

  constructor(message: AgentMessage) {
    const fields = message as unknown as Readonly<Record<string, unknown>>;
    const { role } = message;
    if (role === "compactionSummary" || role === "branchSummary") {
      this.frame += aroundNative;
      this.#text(fields["summary"]);
    } else if (role === "bashExecution") {
      if (fields["excludeFromContext"] === true) {
        this.frame = 0;
        return;
      }
      this.frame += aroundNative;
      for (const name of ["command", "output", "fullOutputPath"]) this.#text(fields[name]);
    } else {
      this.#content(fields["content"]);
      if (role === "system") this.#system(fields);
    }
  }

  #text(value: unknown): void {
    if (typeof value === "string" && value !== "") this.texts.push(value);
  }

  #content(content: unknown): void {
    if (!Array.isArray(content)) {
      this.#text(content);
      return;
    }
    for (const block of content) if (isRecord(block)) this.#block(block);
  }

  #block(block: Readonly<Record<string, unknown>>): void {
    switch (block["type"]) {
      case "text":
        this.#text(block["text"]);
        break;
      case "image":
        this.images += 1;
        break;
      case "thinking":
        if (typeof block["thinking"] === "string") this.reasoning.push(block["thinking"]);
        break;
      case "toolCall":
        this.frame += aroundCall;
        this.#text(block["name"]);
        this.#text(asJson(block["arguments"]));
        break;
      default:
        this.#text(asJson(block));
    }
  }

  #system({ sections, toolsAdded }: Readonly<Record<string, unknown>>): void {
    if (isRecord(sections)) for (const text of Object.values(sections)) this.#text(text);
    // The tools of the first request are in its tool list.
    if (Array.isArray(toolsAdded) && toolsAdded.length > 0) this.#text(asJson(toolsAdded));
  }
}

/** Returns JSON, or an empty text for values that JSON cannot represent. */
function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}
