import type { AgentMessage } from "../../../extension/pi-types.ts";

/** The messages of a session entry in a request. */
export interface ProjectedEntry {
  readonly sourceEntry: { readonly id: string };
  readonly messages: readonly AgentMessage[];
}

interface Owned {
  readonly entryId: string;
  readonly message: AgentMessage;
}

/**
 * Maps the messages of a request to entries, read when pi first shows the request. Messages that other extensions
 * inserted have no entry. Later copies by other extensions are matched by role, timestamp and call.
 */
export class EntryMap {
  /** Messages without an entry map to `undefined`. */
  #byMessage = new WeakMap<object, string | undefined>();
  #pairs: readonly Pair[] = [];
  /** Built on demand, because most requests have no copies. */
  #byKey: ReadonlyMap<string, string> | undefined;
  #isAmbiguous = false;
  #owned = 0;

  /** Whether messages cannot be matched to entries; then no message of the request has an entry. */
  get isAmbiguous(): boolean {
    return this.#isAmbiguous;
  }

  /** Call at the start of a request, with the session's projection in order. */
  take(messages: readonly AgentMessage[], projection: readonly ProjectedEntry[]): void {
    const owned: Owned[] = [];
    for (const { sourceEntry, messages: projected } of projection) {
      for (const message of projected) if (message.role !== "system") owned.push({ entryId: sourceEntry.id, message });
    }
    this.#owned = owned.length;
    const pairs = aligned(messages, owned);
    this.#isAmbiguous = pairs === undefined;
    this.#byMessage = new WeakMap();
    this.#pairs = pairs ?? [];
    this.#byKey = undefined;
    if (this.#pairs.length < messages.length) for (const message of messages) this.#byMessage.set(message, undefined);
    for (const [message, entryId] of this.#pairs) this.#byMessage.set(message, entryId);
  }

  /**
   * Call with the messages as changed by other extensions. A message with the role and time of another one is not its
   * copy while that one is in the list too.
   */
  seen(messages: readonly AgentMessage[]): void {
    const foreign = messages.filter((message) => message.role !== "system" && !this.#byMessage.has(message));
    if (foreign.length === 0) return;
    const there = new Set(messages.map((message) => this.#byMessage.get(message)));
    for (const [key, alike] of Map.groupBy(foreign, keyOf)) {
      const entryId = this.#ofKey(key);
      const isCopy = alike.length === 1 && entryId !== undefined && !there.has(entryId);
      for (const message of alike) this.#byMessage.set(message, isCopy ? entryId : undefined);
    }
  }

  /** Call at the start of a request that needs no entries. */
  forget(): void {
    this.#isAmbiguous = false;
    this.#byMessage = new WeakMap();
    this.#pairs = [];
    this.#byKey = undefined;
  }

  /** Whether the list is exactly the session's own messages. */
  isWhole(messages: readonly AgentMessage[]): boolean {
    const own = messages.filter(({ role }) => role !== "system");
    return own.length === this.#owned && own.every((message) => this.#byMessage.get(message) !== undefined);
  }

  /** Records that a stage copied a message; the copy has the same entry. */
  copied(copy: AgentMessage, original: AgentMessage): void {
    this.#byMessage.set(copy, this.entryOf(original));
  }

  /** Records that a stage made this message; it has no entry. */
  made(message: AgentMessage): void {
    this.#byMessage.set(message, undefined);
  }

  /** The entry of a message of this request. `undefined`: a message of another extension, or unknown. */
  entryOf(message: AgentMessage): string | undefined {
    return this.#byMessage.has(message) ? this.#byMessage.get(message) : this.#ofKey(keyOf(message));
  }

  #ofKey(key: string): string | undefined {
    this.#byKey ??= unique(this.#pairs);
    return this.#byKey.get(key);
  }
}

type Pair = readonly [message: AgentMessage, entryId: string];

/** `undefined`: ambiguous. */
function aligned(messages: readonly AgentMessage[], owned: readonly Owned[]): Pair[] | undefined {
  if (
    messages.length === owned.length &&
    messages.every((message, at) => hasSameKey(message, (owned[at] as Owned).message))
  ) {
    return messages.map((message, at) => [message, (owned[at] as Owned).entryId]);
  }
  const pairs: Pair[] = [];
  const entries = Map.groupBy(owned, ({ message }) => keyOf(message));
  for (const [key, alike] of Map.groupBy(messages, keyOf)) {
    const there = entries.get(key) ?? [];
    const paired = there.length === alike.length ? inOrder(alike, there) : byContent(alike, there);
    if (paired === undefined) return undefined;
    pairs.push(...paired);
  }
  return pairs;
}

function inOrder(messages: readonly AgentMessage[], owned: readonly Owned[]): Pair[] {
  return messages.map((message, at) => [message, (owned[at] as Owned).entryId]);
}

/** Matches equal messages if other extensions have removed or inserted some. */
function byContent(messages: readonly AgentMessage[], owned: readonly Owned[]): Pair[] | undefined {
  const left = Map.groupBy(owned, ({ message }) => said(message));
  const pairs: Pair[] = [];
  let hasForeign = false;
  for (const [content, alike] of Map.groupBy(messages, said)) {
    const there = left.get(content);
    left.delete(content);
    if (there === undefined) hasForeign = true;
    else if (there.length === alike.length) pairs.push(...inOrder(alike, there));
    else return undefined;
  }
  // A foreign message may be one of the remaining ones, changed by another extension.
  return hasForeign && left.size > 0 ? undefined : pairs;
}

function said(message: AgentMessage): string {
  return JSON.stringify(message);
}

function keyOf(message: AgentMessage): string {
  const callId = message.role === "toolResult" ? message.toolCallId : "";
  return `${message.role} ${message.timestamp} ${callId}`;
}

/** Whether {@link keyOf} is the same for both. */
function hasSameKey(a: AgentMessage, b: AgentMessage): boolean {
  if (a.role !== b.role || a.timestamp !== b.timestamp) return false;
  return a.role !== "toolResult" || a.toolCallId === (b as typeof a).toolCallId;
}

/** Entries by key, for keys of a single message. */
function unique(pairs: readonly Pair[]): ReadonlyMap<string, string> {
  const found = new Map<string, string | undefined>();
  for (const [message, entryId] of pairs) {
    const key = keyOf(message);
    found.set(key, found.has(key) ? undefined : entryId);
  }
  return new Map([...found].filter((one): one is [string, string] => one[1] !== undefined));
}
