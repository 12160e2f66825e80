import type { PayloadCheck } from "../../protocol/delivery.ts";
import { isRecord } from "../../protocol/objects.ts";
import { withoutLastTag } from "../message-tag.ts";
import { deliveryIdOf } from "./marker.ts";

/** A push expected in a request, with its content. */
export interface ExpectedPush {
  readonly deliveryId: string;
  readonly content: unknown;
}

/** Shorter texts occur inside others by accident, so they must match a whole message. */
const minLengthInsideAnother = 24;
const maxDepth = 6;

/**
 * Checks whether the payload for the provider contains the content of each push. A payload does not say which push a
 * text belongs to, so equal texts are counted: the payload must have as many user messages with this content as the
 * message list. Fewer mean that another handler removed some.
 *
 * pi's adapters turn custom messages into user messages, keep their blocks, remove lone surrogates and drop blank text.
 * Therefore a push with a lone surrogate is never in a payload unchanged. The message tags of pruning are ignored.
 */
export function checkPresence(
  expected: readonly ExpectedPush[],
  messages: readonly unknown[],
  payload: unknown,
): Record<string, PayloadCheck> {
  const wanted = expected.map(({ deliveryId, content }) => ({ deliveryId, pushed: messageTextOf({ content }) }));
  const ids = new Set(expected.map(({ deliveryId }) => deliveryId));
  const others = messages
    .filter((message) => isUserSide(message) && !ids.has(deliveryIdOf(message) ?? ""))
    .map(messageTextOf);
  const listed = [...wanted.map(({ pushed }) => pushed), ...others];
  const sent = userMessagesOf(payload).map(messageTextOf);
  return Object.fromEntries(
    wanted.map(({ deliveryId, pushed }) => [deliveryId, isSent(pushed, listed, sent) ? "confirmed" : "unverified"]),
  );
}

function isSent(pushed: MessageText, listed: readonly MessageText[], sent: readonly MessageText[]): boolean {
  if (pushed.isEmpty || pushed.isChanged) return false;
  const whole = (messages: readonly MessageText[]): number => messages.filter((other) => pushed.equals(other)).length;
  if (whole(sent) >= whole(listed)) return true;
  // An adapter may have joined messages.
  if (pushed.text.length < minLengthInsideAnother) return false;
  const within = (messages: readonly MessageText[]): number =>
    messages.reduce((sum, other) => sum + other.count(pushed.text), 0);
  const images = sent.flatMap((other) => other.images);
  return within(sent) >= within(listed) && pushed.images.every((image) => images.includes(image));
}

/** Roles that pi sends as user messages with their content as it is. */
function isUserSide(message: unknown): boolean {
  return isRecord(message) && (message["role"] === "user" || message["role"] === "custom" || "summary" in message);
}

/**
 * Returns the user messages of a payload in any format of pi's adapters: `messages`, `input` or `contents`, at the top
 * level or nested. An unknown format counts as one message for each text in it.
 */
function userMessagesOf(payload: unknown): readonly unknown[] {
  const found = findUserMessages(payload, 0);
  return found ?? stringsIn(payload, 0).map((content) => ({ content }));
}

function findUserMessages(value: unknown, depth: number): readonly unknown[] | undefined {
  if (depth > maxDepth || typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    const messages = value.filter((element) => isRecord(element) && typeof element["role"] === "string");
    return messages.length > 0 ? messages.filter((message) => message["role"] === "user") : undefined;
  }
  for (const inner of Object.values(value)) {
    const users = findUserMessages(inner, depth + 1);
    if (users !== undefined) return users;
  }
  return undefined;
}

function messageTextOf(message: unknown): MessageText {
  if (!isRecord(message)) return new MessageText([], []);
  const content = message["content"] ?? message["parts"] ?? message["summary"];
  if (typeof content === "string") return new MessageText([withoutLastTag(content)], []);
  const texts: string[] = [];
  const images: string[] = [];
  for (const block of Array.isArray(content) ? content : []) {
    if (!isRecord(block)) continue;
    const { text } = block;
    if (typeof text === "string") texts.push(withoutLastTag(text));
    else if (!isToolResult(block)) images.push(...imagesIn(block, 0));
  }
  return new MessageText(texts, images);
}

function isToolResult(block: Readonly<Record<string, unknown>>): boolean {
  return block["type"] === "tool_result" || "functionResponse" in block || "toolResult" in block;
}

/** Base64 image data in any of the known formats, plain or in a data URL. */
function imagesIn(value: unknown, depth: number): string[] {
  if (depth > maxDepth) return [];
  if (value instanceof Uint8Array)
    return [Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")];
  if (!isRecord(value)) return [];
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

/** Content of a message, normalised for what adapters change: the division into blocks and white space around it. */
class MessageText {
  readonly #raw: string;
  /** Whether lone surrogates were removed. */
  readonly isChanged: boolean;
  readonly images: readonly string[];
  #squeezed: string | undefined;
  #beginning: string | undefined;

  constructor(texts: readonly string[], images: readonly string[]) {
    // Each text separately: halves at the end of one and the start of the next do not form a pair.
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

  equals(other: MessageText): boolean {
    if (this.images.length !== other.images.length) return false;
    if (!this.images.every((image, index) => image === other.images[index])) return false;
    return this.#raw === other.#raw || (this.#canEqual(other) && this.text === other.text);
  }

  /** Number of occurrences of a text without white space. */
  count(text: string): number {
    return this.text.split(text).length - 1;
  }

  /** Compares the beginnings first, because a push can have megabytes. */
  #canEqual(other: MessageText): boolean {
    const [one, two] = [this.#start, other.#start];
    return one.startsWith(two) || two.startsWith(one);
  }

  /** Cached, because each message is compared with each push. */
  get #start(): string {
    this.#beginning ??= this.#raw.slice(0, 256).replace(/\s+/g, "");
    return this.#beginning;
  }
}
