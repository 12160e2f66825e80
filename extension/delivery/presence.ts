import type { PayloadCheck } from "../../protocol/delivery.ts";
import { withoutLastTag } from "../message-tag.ts";
import { isObject } from "../pi-types.ts";
import { deliveryIdOf } from "./marker.ts";

/** A push that a request carries, with the content that was handed over. */
export interface Expected {
  readonly deliveryId: string;
  readonly content: unknown;
}

/** Shorter texts occur in others by accident, so they have to be a message of their own. */
const minLengthInsideAnother = 24;
const maxDepth = 6;

/**
 * Whether the content of each push is in the payload that leaves for the provider. Only a doubt can come of this: which
 * push a text belongs to is never read from the payload. So equal texts are counted: the payload must have as many
 * user messages with this content as the message list, from which another handler may have taken some since.
 *
 * pi's adapters turn custom messages into user messages, keep their blocks, remove lone surrogates and drop blank text. A
 * push with a lone surrogate can therefore not be in any payload as it is.
 * The tag by which pruning names a message is no part of it.
 */
export function checkPresence(
  expected: readonly Expected[],
  messages: readonly unknown[],
  payload: unknown,
): Record<string, PayloadCheck> {
  const wanted = expected.map(({ deliveryId, content }) => ({ deliveryId, said: saidBy({ content }) }));
  const ids = new Set(expected.map(({ deliveryId }) => deliveryId));
  const others = messages.filter((message) => isUserSide(message) && !ids.has(deliveryIdOf(message) ?? "")).map(saidBy);
  const listed = [...wanted.map(({ said }) => said), ...others];
  const sent = userMessagesOf(payload).map(saidBy);
  return Object.fromEntries(
    wanted.map(({ deliveryId, said }) => [deliveryId, isSent(said, listed, sent) ? "confirmed" : "unverified"]),
  );
}

function isSent(said: Said, listed: readonly Said[], sent: readonly Said[]): boolean {
  if (said.isEmpty || said.isChanged) return false;
  const whole = (messages: readonly Said[]): number => messages.filter((other) => said.equals(other)).length;
  if (whole(sent) >= whole(listed)) return true;
  // An adapter may have joined messages.
  if (said.text.length < minLengthInsideAnother) return false;
  const within = (messages: readonly Said[]): number =>
    messages.reduce((sum, other) => sum + other.count(said.text), 0);
  const images = sent.flatMap((other) => other.images);
  return within(sent) >= within(listed) && said.images.every((image) => images.includes(image));
}

/** Roles that pi sends as user messages with their content as it is. */
function isUserSide(message: unknown): boolean {
  return isObject(message) && (message["role"] === "user" || message["role"] === "custom" || "summary" in message);
}

/**
 * The user messages of a payload, in any of the formats of pi's adapters: `messages`, `input` or `contents`, at the top
 * or below. What no format is known for is read as one message for each text in it.
 */
function userMessagesOf(payload: unknown): readonly unknown[] {
  const found = findUserMessages(payload, 0);
  return found ?? stringsIn(payload, 0).map((content) => ({ content }));
}

function findUserMessages(value: unknown, depth: number): readonly unknown[] | undefined {
  if (depth > maxDepth || typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    const messages = value.filter((element) => isObject(element) && typeof element["role"] === "string");
    return messages.length > 0 ? messages.filter((message) => message["role"] === "user") : undefined;
  }
  for (const inner of Object.values(value)) {
    const users = findUserMessages(inner, depth + 1);
    if (users !== undefined) return users;
  }
  return undefined;
}

function saidBy(message: unknown): Said {
  if (!isObject(message)) return new Said([], []);
  const content = message["content"] ?? message["parts"] ?? message["summary"];
  if (typeof content === "string") return new Said([withoutLastTag(content)], []);
  const texts: string[] = [];
  const images: string[] = [];
  for (const block of Array.isArray(content) ? content : []) {
    if (!isObject(block)) continue;
    const { text } = block;
    if (typeof text === "string") texts.push(withoutLastTag(text));
    else if (!isToolResult(block)) images.push(...imagesIn(block, 0));
  }
  return new Said(texts, images);
}

function isToolResult(block: Readonly<Record<string, unknown>>): boolean {
  return block["type"] === "tool_result" || "functionResponse" in block || "toolResult" in block;
}

/** The base64 texts under the names by which the formats know them, alone or behind a data URL's head. */
function imagesIn(value: unknown, depth: number): string[] {
  if (depth > maxDepth) return [];
  if (value instanceof Uint8Array)
    return [Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")];
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (typeof inner !== "string") return imagesIn(inner, depth + 1);
    if (name === "data") return [inner];
    const head = inner.startsWith("data:") ? inner.indexOf(";base64,") : -1;
    return head < 0 ? [] : [inner.slice(head + ";base64,".length)];
  });
}

function stringsIn(value: unknown, depth: number): string[] {
  if (typeof value === "string") return [value];
  if (depth > maxDepth || typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((inner) => stringsIn(inner, depth + 1));
}

const loneSurrogates = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** What a message says, without what adapters change: how it is cut into blocks, and white space around the cuts. */
class Said {
  readonly #raw: string;
  /** Whether lone surrogates were removed. */
  readonly isChanged: boolean;
  readonly images: readonly string[];
  #squeezed: string | undefined;
  #beginning: string | undefined;

  constructor(texts: readonly string[], images: readonly string[]) {
    // Of each text by itself: halves at the end of one and the beginning of the next make no pair.
    this.isChanged = !texts.every((text) => text.isWellFormed());
    this.#raw = (this.isChanged ? texts.map((text) => text.replace(loneSurrogates, "")) : texts).join("");
    this.images = images;
  }

  /** The text without white space, unless there is nothing else. */
  get text(): string {
    this.#squeezed ??= this.#raw.replace(/\s+/g, "") || this.#raw;
    return this.#squeezed;
  }

  get isEmpty(): boolean {
    return this.#raw === "" && this.images.length === 0;
  }

  equals(other: Said): boolean {
    if (this.images.length !== other.images.length) return false;
    if (!this.images.every((image, index) => image === other.images[index])) return false;
    return this.#raw === other.#raw || (this.#canEqual(other) && this.text === other.text);
  }

  /** How often a text without white space is in this one. */
  count(text: string): number {
    return this.text.split(text).length - 1;
  }

  /** Tells most texts apart by their beginnings: a push may have megabytes. */
  #canEqual(other: Said): boolean {
    const [one, two] = [this.#start, other.#start];
    return one.startsWith(two) || two.startsWith(one);
  }

  /** Read once: each message is compared with each push. */
  get #start(): string {
    this.#beginning ??= this.#raw.slice(0, 256).replace(/\s+/g, "");
    return this.#beginning;
  }
}
