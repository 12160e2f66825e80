import type { By } from "../../protocol/client-identity.ts";
import type { ImageBlock } from "../../protocol/content.ts";
import { WireError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/objects.ts";
import type { Prompt, PromptState } from "../../protocol/prompt.ts";
import type { LostPrompt } from "../../protocol/session.ts";
import type { Receipts } from "../delivery/session-receipts.ts";
import { entryIdOf, type UserEntry, type UserMessage, userEntries, userMessage } from "../log/user-entries.ts";
import type { PiEvent } from "../pi/records.ts";
import type { OwedNotification } from "../store/children.ts";
import { isOver, maxExcerptLength, type PromptStore, type StoredPrompt } from "../store/prompts.ts";
import { PromptWaiters, type Waited } from "./prompt-waiters.ts";
import { emptyQueue, type QueuedTexts, type QueueKind, queueKinds } from "./queued-texts.ts";
import type { RunEnd } from "./runs.ts";

export interface PromptLedgerOptions {
  readonly sessionId: string;
  readonly store: PromptStore;
  readonly receipts: Receipts;
  /** pi's current session file. */
  readonly file: () => string;
  /** What clients are told of a change; `by` is the client whose call caused it. */
  readonly updated: (prompt: Prompt, by: By | undefined) => OwedNotification;
  /** Prompts turned out to be lost. */
  readonly onLost: (lost: readonly LostPrompt[]) => void;
  /** A condition of {@link PromptLedger.isQuiet} has changed. */
  readonly onChange: () => void;
  /** Maximum number of open prompts in pi, and of characters in their texts. */
  readonly maxOpen: number;
  readonly maxOpenChars: number;
}

/** Undefined fields stay unchanged. */
type Change = { readonly [K in keyof StoredPrompt]?: StoredPrompt[K] | undefined };
type NewPrompt = Pick<StoredPrompt, "promptId" | "text" | "hash" | "by"> & {
  readonly group?: string | undefined;
  readonly images?: readonly ImageBlock[];
};

/** The position of a prompt in pi's queue. The text is pi's version: templates, skills and extensions rewrite it. */
interface Place {
  readonly kind: QueueKind;
  readonly text: string;
}

/** One message of pi's queue. Without a prompt, an extension queued it. */
export interface QueuedMessage extends Place {
  readonly prompt?: StoredPrompt;
}

const maxLost = 16;
/** Entries that are assigned to prompts, so that each is assigned once. */
const maxClaimed = 256;
/** Ended prompts that are known without reading the store. */
const maxRecent = 32;

/**
 * Tracks each prompt from before pi receives it until the end of its run. pi keeps queued prompts in memory, and
 * loses even an accepted one when it is killed within milliseconds (measured). Such a loss is found by reading pi's
 * session file and is reported; the prompt is never resent automatically. A prompt that a call removed from pi's
 * queue belongs to that call: it survives that pi, and the call gives it to the next one.
 */
export class PromptLedger {
  readonly #options: PromptLedgerOptions;
  readonly #open = new Map<string, StoredPrompt>();
  readonly #recent = new Map<string, StoredPrompt>();
  readonly #waiters = new PromptWaiters();
  #queue = emptyQueue;
  /** Of prompts that are not in the transcript yet: pi returns texts without their images. */
  readonly #images = new Map<string, readonly ImageBlock[]>();
  /**
   * Removed from pi's queue by a call that has not ended. A message that pi was processing at that moment is inserted
   * anyway; the call owns the others, whatever happens to pi.
   */
  readonly #takenOut = new Set<QueuedMessage>();
  /** The clients of the prompts that pi has not answered yet. Undefined: an unknown client. */
  readonly #asking = new Map<string, By | undefined>();
  /** The one that is being returned to pi. */
  #givenBack: string | undefined;
  /** A prompt that pi accepted without its disposition: a run that begins now is assumed to be its. */
  #presumed: string | undefined;
  #openChars = 0;
  readonly #claimed = new Set<string>();
  #accounting: Promise<unknown> = Promise.resolve();
  #lost: LostPrompt[] = [];
  #lastEnd: RunEnd | undefined;

  constructor(options: PromptLedgerOptions) {
    this.#options = options;
    for (const prompt of options.store.open(options.sessionId)) {
      if (prompt.state === "lost") this.#lost.push(lostPrompt(prompt));
      else this.#track(prompt);
    }
    this.#lost = this.#lost.slice(-maxLost);
    if (this.#open.size === 0) return;
    for (const { entryId } of options.store.list(options.sessionId, ["inserted"], maxClaimed)) this.#claim(entryId);
  }

  /** The newest lost prompts, oldest first. */
  get lost(): readonly LostPrompt[] {
    return this.#lost;
  }

  /** The clients of the prompts that pi has not answered yet. Undefined: an unknown client. */
  get asking(): readonly (By | undefined)[] {
    return [...this.#asking.values()];
  }

  /** Whether every prompt is in the transcript. */
  get isQuiet(): boolean {
    return ![...this.#open.values()].some(({ state }) => isUndecided(state));
  }

  /** The prompt that a run which begins now is most likely for. */
  get presumed(): StoredPrompt | undefined {
    return this.#presumed === undefined ? undefined : this.#open.get(this.#presumed);
  }

  /** Prompts that pi has not answered, or of which its answer did not say what became of them. */
  get unanswered(): readonly StoredPrompt[] {
    return [...this.#open.values()].filter(({ state }) => state === "stored");
  }

  /** Whether pi has the prompt or is being sent it, and it has not ended. */
  isOpen(promptId: string): boolean {
    return this.#open.has(promptId);
  }

  /** A retained prompt of this session. */
  find(promptId: string): StoredPrompt | undefined {
    return this.#open.get(promptId) ?? this.#recent.get(promptId) ?? this.#options.store.get(promptId);
  }

  /** Newest first. */
  list(states: readonly PromptState[], limit: number): readonly StoredPrompt[] {
    const { store, sessionId } = this.#options;
    // Memory has the changes that are not written yet.
    const known = store.list(sessionId, states, limit).map((row) => this.#open.get(row.promptId) ?? row);
    return known.filter(({ state }) => states.includes(state));
  }

  /**
   * Resolves when the text is on disk: only then may it be written to pi. Throws `overloaded`, `store_failed`; then
   * nothing is stored.
   */
  async store({ promptId, text, hash, by, group, images = [] }: NewPrompt): Promise<void> {
    const { sessionId, maxOpen, maxOpenChars, store } = this.#options;
    const chars = text.length + charsOf(images);
    if (this.#open.size >= maxOpen || (this.#openChars > 0 && this.#openChars + chars > maxOpenChars)) {
      const why = `The session has ${this.#open.size} open prompts, which is its limit.`;
      throw new WireError("overloaded", why, { retryAfterMs: 1_000, maxOpen, maxOpenChars });
    }
    const now = Date.now();
    const prompt: StoredPrompt = {
      promptId,
      sessionId,
      state: "stored",
      text,
      length: text.length,
      hash,
      ...(by === undefined ? {} : { by }),
      ...(images.length === 0 ? {} : { hasImages: true }),
      createdAt: now,
      updatedAt: now,
    };
    this.#images.set(promptId, images);
    this.#openChars += charsOf(images);
    this.#track(prompt);
    try {
      await store.add(prompt, group);
    } catch (error) {
      this.#untrack(promptId);
      throw error;
    }
    // Its pi may have ended in the meantime, so that it is lost.
    if (this.#open.get(promptId)?.state === "stored")
      this.#options.receipts.tell(undefined, () => this.#updated(prompt, by));
  }

  /** The prompt is being written to pi, which must answer it. */
  asked(promptId: string, by: By | undefined): void {
    this.#asking.set(promptId, by);
  }

  /** pi has answered the prompt, or cannot answer it any more. */
  answered(promptId: string): void {
    this.#asking.delete(promptId);
  }

  /** pi took it: to start a run, or into its queue. */
  accepted(promptId: string, disposition: "started" | "queued", runId?: string): void {
    const prompt = this.#open.get(promptId);
    if (prompt === undefined) return;
    this.#forgetPresumed(promptId);
    // It may be in the transcript by now. A queued prompt belongs to the run that takes it in.
    const facts = { disposition, runId: prompt.runId ?? (disposition === "started" ? runId : undefined) };
    this.#change(prompt, prompt.state === "stored" ? { state: disposition, ...facts } : facts, prompt.by);
  }

  /** pi took it, probably to start a run. */
  presumeStarted(promptId: string): void {
    this.#presumed = promptId;
  }

  /** An extension or a command took it, so it has no run. */
  handled(promptId: string): void {
    this.#forgetPresumed(promptId);
    const prompt = this.#open.get(promptId);
    // An extension may take a queued prompt when it is returned to pi.
    if (prompt?.state === "stored" || (prompt?.state === "queued" && promptId === this.#givenBack)) {
      this.#change(prompt, { state: "handled", disposition: "handled" }, prompt.by);
    }
  }

  /** pi refused it. Its id may be used again. */
  refused(promptId: string): void {
    this.#forgetPresumed(promptId);
    const prompt = this.#open.get(promptId);
    if (prompt === undefined) return;
    this.#untrack(promptId);
    const stored = this.#options.store.forget(promptId);
    const refused: StoredPrompt = { ...prompt, state: "refused", updatedAt: Date.now() };
    this.#options.receipts.tell(
      stored,
      () => this.#updated(refused, prompt.by),
      () => this.#waiters.notify(refused, undefined),
    );
  }

  /** Goes on with pi's queue as a former daemon knew it: its prompts are stored with their places. */
  resume(queue: QueuedTexts): void {
    this.#queue = queue;
  }

  /** pi's queue changed. An added text is the prompt that pi is being given. */
  queueChanged(queue: QueuedTexts): void {
    for (const kind of queueKinds) {
      const before = [...this.#queue[kind]];
      for (const text of queue[kind]) {
        const known = before.indexOf(text);
        if (known !== -1) before.splice(known, 1);
        else this.#placed({ kind, text });
      }
    }
    this.#queue = queue;
  }

  /** The images of a prompt that is not in the transcript yet. Undefined: a former daemon had them. */
  imagesOf(promptId: string): readonly ImageBlock[] | undefined {
    return this.#images.get(promptId) ?? (this.#open.get(promptId)?.hasImages === undefined ? [] : undefined);
  }

  /** A prompt that was removed from pi's queue is being returned. pi may rewrite its text differently this time. */
  givingBack(promptId: string): void {
    this.#givenBack = promptId;
  }

  gaveBack(promptId: string): void {
    if (this.#givenBack === promptId) this.#givenBack = undefined;
  }

  /** pi's queue in processing order. */
  queued(): readonly QueuedMessage[] {
    return this.#messagesOf(this.#queue);
  }

  /** Whether pi has a prompt in its queue. */
  isQueued(promptId: string): boolean {
    return this.queued().some(({ prompt }) => prompt?.promptId === promptId);
  }

  /**
   * These texts were removed from pi's queue. Call this at the position of pi's answer, so that later records are not
   * attributed to them. A message that pi was processing at that moment is inserted anyway.
   */
  takenOut(queue: QueuedTexts): readonly QueuedMessage[] {
    const messages = this.#messagesOf(queue);
    for (const message of messages) this.#takenOut.add(message);
    this.#queue = emptyQueue;
    return messages;
  }

  /** The removed messages that are not in the transcript. */
  stillOut(messages: readonly QueuedMessage[]): readonly QueuedMessage[] {
    return messages.filter((message) => this.#takenOut.has(message));
  }

  /**
   * pi is not processing a queued message now: withdraws the given ones, and returns all messages that are still out.
   */
  withdrawTakenOut(
    messages: readonly QueuedMessage[],
    isWithdrawn: (message: QueuedMessage) => boolean,
    by?: By,
  ): readonly QueuedMessage[] {
    const out = this.stillOut(messages);
    for (const message of out.filter(isWithdrawn)) {
      this.#takenOut.delete(message);
      const prompt = this.#open.get(message.prompt?.promptId ?? "");
      if (prompt?.state === "queued") this.#change(prompt, { state: "withdrawn" }, by);
    }
    return out;
  }

  /**
   * The pi from whose queue they were removed has ended. Messages outside the session file still belong to the call.
   */
  async accountTakenOut(): Promise<void> {
    const promptIds = new Set([...this.#takenOut].map(({ prompt }) => prompt?.promptId));
    await this.account(({ promptId }) => promptIds.has(promptId));
  }

  /** The call that removed them has ended: a message that is neither in pi nor in the session file is lost. */
  async endTakenOut(messages: readonly QueuedMessage[], given: ReadonlySet<QueuedMessage>): Promise<void> {
    const left = messages.filter((message) => this.#takenOut.delete(message) && !given.has(message));
    const promptIds = new Set(left.map(({ prompt }) => prompt?.promptId));
    await this.account(({ promptId }) => promptIds.has(promptId));
  }

  /** The prompt that a user's message is, before {@link messageEnded}. */
  promptOf(message: unknown): StoredPrompt | undefined {
    const { text } = (this.isQuiet ? undefined : userMessage(message)) ?? {};
    return text === undefined ? undefined : this.#matching(text);
  }

  /** The prompt of an entry that was just found in the session file. */
  foundAs(entryId: string): StoredPrompt | undefined {
    return [...this.#open.values(), ...this.#recent.values()].find((prompt) => prompt.entryId === entryId);
  }

  /** A message of pi is complete, so its entry is in the session file. Returns the id of its prompt, if any. */
  messageEnded(event: PiEvent, runId: string | undefined): string | undefined {
    if (this.isQuiet && this.#takenOut.size === 0) return undefined;
    const message = userMessage(event["message"]);
    const taken = message === undefined ? undefined : [...this.#takenOut].find(({ text }) => text === message.text);
    if (taken !== undefined) this.#takenOut.delete(taken);
    const prompt = message === undefined ? undefined : this.#matching(message.text);
    if (message === undefined || prompt === undefined) return undefined;
    this.#inserted(prompt, message, runId);
    return prompt.promptId;
  }

  /**
   * The run has ended by itself. Prompts that pi took and does not have queued are in the session file by now; others
   * were taken by an extension, or are lost.
   */
  runSettled(): void {
    const queued = new Set([...this.queued(), ...this.#takenOut].map(({ prompt }) => prompt?.promptId));
    const isAsked = ({ state, promptId }: StoredPrompt): boolean =>
      (state === "started" || state === "queued") && !queued.has(promptId);
    // An older pi reports a prompt that an extension took as queued.
    for (const prompt of [...this.#open.values()].filter(isAsked)) {
      if (prompt.state === "queued" && prompt.place === undefined)
        this.#change(prompt, { state: "handled", disposition: "handled" }, prompt.by);
    }
    const asked = new Set([...this.#open.values()].filter(isAsked).map(({ promptId }) => promptId));
    if (asked.size > 0) this.account(({ promptId }) => asked.has(promptId)).catch(() => {});
  }

  /** A run has ended, and with it its prompts. Checks for a prompt that the run should have taken in. */
  runEnded(end: RunEnd): void {
    this.#lastEnd = end;
    const { runId, outcome } = end;
    const of = [...this.#open.values()].filter((prompt) => prompt.runId === runId);
    for (const prompt of of) {
      this.#change(prompt, endOf(end));
    }
    // The end of the child checks all of them.
    if (outcome === "interrupted" || !of.some(({ state }) => state === "started")) return;
    this.account((prompt) => prompt.state === "started" && prompt.runId === runId).catch(() => {});
  }

  /** The child has ended: compares open prompts with the session file and reports losses. */
  async childEnded(): Promise<void> {
    this.#presumed = undefined;
    this.#queue = emptyQueue;
    await this.account((prompt) => isUndecided(prompt.state));
    for (const prompt of this.#open.values()) {
      if (prompt.state === "inserted") this.#change(prompt, { outcome: prompt.outcome ?? "interrupted" });
    }
  }

  /** Searches the session file for open prompts, and marks missing ones as lost. */
  async account(isAsked: (prompt: StoredPrompt) => boolean): Promise<void> {
    const accounted = this.#accounting.then(() => this.#account(isAsked));
    this.#accounting = accounted.catch(() => {});
    await accounted;
  }

  async #account(isAsked: (prompt: StoredPrompt) => boolean): Promise<void> {
    if (![...this.#open.values()].some(isAsked)) return;
    const all = await userEntries(this.#options.file());
    const written = all.filter(({ entryId }) => entryId === undefined || !this.#claimed.has(entryId));
    const end = this.#lastEnd;
    const lost: LostPrompt[] = [];
    for (const prompt of [...this.#open.values()].filter(isAsked)) {
      const entry = takeEntry(written, prompt, placeOf(prompt)?.text);
      const taken = [...this.#takenOut].find((message) => message.prompt?.promptId === prompt.promptId);
      if (entry !== undefined) {
        this.#claim(entry.entryId);
        if (taken !== undefined) this.#takenOut.delete(taken);
        const runId = prompt.runId ?? end?.runId;
        const ended = end !== undefined && end.runId === runId ? endOf(end) : {};
        this.#change(prompt, { state: "inserted", entryId: entry.entryId, runId, ...ended });
      } else if (taken === undefined) {
        lost.push(lostPrompt(prompt));
        this.#lost = [...this.#lost, lostPrompt(prompt)].slice(-maxLost);
        this.#change(prompt, { state: "lost" });
      }
    }
    if (lost.length > 0) this.#options.onLost(lost);
  }

  /**
   * Resolves when the prompt and its run have ended. Throws `deadline_exceeded`, and the error passed to {@link
   * close}.
   */
  async over(promptId: string, timeoutMs: number, signal: AbortSignal): Promise<Waited> {
    if (!this.#open.has(promptId)) {
      await this.#options.receipts.told();
      const prompt = this.find(promptId);
      if (prompt === undefined) throw promptNotFound(promptId);
      return { prompt, end: this.#endOf(prompt) };
    }
    return await this.#waiters.wait({ promptId, timeoutMs, signal, runId: () => this.find(promptId)?.runId });
  }

  /** The prompt, once it is known whether its pi has taken it. */
  async decided(promptId: string): Promise<StoredPrompt> {
    while (this.#open.get(promptId)?.state === "stored") await this.#waiters.next();
    await this.#options.receipts.told();
    const prompt = this.find(promptId);
    if (prompt === undefined) throw promptNotFound(promptId);
    return prompt;
  }

  /** Whether this was the last run, and it ended by itself. */
  hasSettled(runId: string): boolean {
    return this.#lastEnd?.runId === runId && this.#lastEnd.outcome === "settled";
  }

  /** Rejects all waits, because the session is over. */
  close(why: WireError): void {
    this.#waiters.fail(why);
  }

  #inserted(prompt: StoredPrompt, message: UserMessage, runId: string | undefined): void {
    this.#forgetPresumed(prompt.promptId);
    const inserted = this.#set(prompt, { state: "inserted", runId: runId ?? prompt.runId });
    const { store, receipts, file } = this.#options;
    const stored = store.put(inserted);
    const noted = (async () => {
      const entryId = await entryIdOf(file(), message);
      const current = this.#open.get(inserted.promptId) ?? this.#recent.get(inserted.promptId) ?? inserted;
      this.#claim(entryId);
      await (entryId === undefined ? stored : store.put(this.#set(current, { entryId })));
    })();
    receipts.tell(noted, () => this.#updated({ ...inserted, ...entryOf(this.find(inserted.promptId)) }, undefined));
  }

  /**
   * The prompt of a message: the same text, or else the one that began the run, because templates, skills and
   * extensions rewrite texts.
   */
  #matching(text: string): StoredPrompt | undefined {
    const undecided = [...this.#open.values()].filter(({ state }) => isUndecided(state));
    return (
      undecided.find((prompt) => (placeOf(prompt)?.text ?? prompt.text) === text) ??
      undecided.find(({ promptId, state }) => state === "started" || promptId === this.#presumed)
    );
  }

  #change(prompt: StoredPrompt, change: Change, by?: By): void {
    const changed = this.#set(prompt, change);
    const { store, receipts } = this.#options;
    const isSettled = isOver(changed);
    const stored = store.put(changed, isSettled);
    const told = (): StoredPrompt => ({ ...changed, ...entryOf(this.find(changed.promptId)) });
    const isNews = changed.state !== prompt.state || changed.outcome !== prompt.outcome;
    receipts.tell(
      isSettled ? stored : undefined,
      () => (isNews ? this.#updated(told(), by) : undefined),
      () => {
        if (isSettled) this.#waiters.notify(told(), this.#endOf(told()));
      },
    );
  }

  #set(prompt: StoredPrompt, change: Change): StoredPrompt {
    const changed: StoredPrompt = { ...prompt, ...defined(change), updatedAt: Date.now() };
    if (isOver(changed)) {
      this.#untrack(changed.promptId);
      const { text } = changed;
      const kept = changed.state === "lost" ? text : text.slice(0, maxExcerptLength);
      this.#recent.set(changed.promptId, { ...changed, text: kept });
      const [oldest] = this.#recent.keys();
      if (this.#recent.size > maxRecent && oldest !== undefined) this.#recent.delete(oldest);
    } else if (this.#open.has(changed.promptId)) {
      this.#open.set(changed.promptId, changed);
      if (changed.state === "inserted") this.#forgetImages(changed.promptId);
    }
    this.#waiters.changed();
    this.#options.onChange();
    return changed;
  }

  /** pi receives one prompt at a time; an extension may queue its own message in the meantime. */
  #placed(place: Place): void {
    const isGivenBack = ({ promptId }: StoredPrompt): boolean => promptId === this.#givenBack;
    const given = [...this.#open.values()].filter(
      (prompt) =>
        (prompt.state === "stored" || prompt.state === "queued") && (isGivenBack(prompt) || prompt.place === undefined),
    );
    const isText = (prompt: StoredPrompt): boolean =>
      prompt.text === place.text || placeOf(prompt)?.text === place.text;
    const prompt = given.find(isText) ?? given.find((one) => one.state === "stored" || isGivenBack(one));
    if (prompt === undefined) return;
    const { kind, text } = place;
    const placed = { ...prompt, place: text === prompt.text ? { kind } : place };
    this.#open.set(prompt.promptId, placed);
    void this.#options.store.put(placed);
  }

  #messagesOf(queue: QueuedTexts): readonly QueuedMessage[] {
    const queued = [...this.#open.values()].filter(({ state }) => state === "stored" || state === "queued");
    const messages: QueuedMessage[] = [];
    for (const kind of queueKinds) {
      for (const text of queue[kind]) {
        const at = queued.findIndex((prompt) => {
          const place = placeOf(prompt) ?? { kind, text: prompt.text };
          return place.kind === kind && place.text === text;
        });
        const [prompt] = at === -1 ? [] : queued.splice(at, 1);
        messages.push({ kind, text, ...(prompt === undefined ? {} : { prompt }) });
      }
    }
    return messages;
  }

  #claim(entryId: string | undefined): void {
    if (entryId === undefined) return;
    this.#claimed.add(entryId);
    const [oldest] = this.#claimed;
    if (this.#claimed.size > maxClaimed && oldest !== undefined) this.#claimed.delete(oldest);
  }

  #track(prompt: StoredPrompt): void {
    this.#open.set(prompt.promptId, prompt);
    this.#openChars += prompt.text.length;
  }

  #untrack(promptId: string): void {
    const prompt = this.#open.get(promptId);
    if (prompt === undefined) return;
    this.#open.delete(promptId);
    this.#forgetImages(promptId);
    this.#openChars -= prompt.text.length;
    this.#waiters.changed();
    this.#options.onChange();
  }

  #forgetImages(promptId: string): void {
    this.#openChars -= charsOf(this.#images.get(promptId) ?? []);
    this.#images.delete(promptId);
  }

  #endOf({ runId }: StoredPrompt): RunEnd | undefined {
    return runId !== undefined && this.#lastEnd?.runId === runId ? this.#lastEnd : undefined;
  }

  #forgetPresumed(promptId: string): void {
    if (this.#presumed === promptId) this.#presumed = undefined;
  }

  #updated(prompt: StoredPrompt, by: By | undefined): OwedNotification {
    return this.#options.updated(shown(prompt), by);
  }
}

export function promptNotFound(promptId: string): WireError {
  return new WireError("prompt_not_found", `There is no prompt "${promptId}".`, { promptId });
}

/** A prompt as clients see it: with the beginning of its text, or with all of the stored text. */
export function shown(
  { hash: _hash, place: _place, hasImages: _images, ...prompt }: StoredPrompt,
  whole = false,
): Prompt {
  return whole ? prompt : { ...prompt, text: prompt.text.slice(0, maxExcerptLength) };
}

/** Whether pi may still bring it into the transcript. */
function isUndecided(state: PromptState): boolean {
  return state === "stored" || state === "started" || state === "queued";
}

/** Assigns an entry to a prompt, so that no other prompt can take it. */
function takeEntry(
  written: UserEntry[],
  { text: own, createdAt, state }: StoredPrompt,
  text = own,
): UserEntry | undefined {
  const index = written.findIndex((entry) => entry.at >= createdAt && entry.text === text);
  // The text that began a run may have been rewritten by templates, skills and extensions.
  const rewritten = state === "started" ? written.findIndex((entry) => entry.at >= createdAt) : -1;
  const found = index === -1 ? rewritten : index;
  return found === -1 ? undefined : written.splice(found, 1)[0];
}

function placeOf({ place, text }: StoredPrompt): Place | undefined {
  return place === undefined ? undefined : { text, ...place };
}

function charsOf(images: readonly ImageBlock[]): number {
  return images.reduce((sum, { data }) => sum + data.length, 0);
}

function endOf({ outcome, stopReason, error }: RunEnd): Change {
  return { outcome, stopReason, error };
}

function lostPrompt({ promptId, text, createdAt }: StoredPrompt): LostPrompt {
  return { promptId, text: text.slice(0, maxExcerptLength), length: text.length, at: createdAt };
}

function entryOf(prompt: StoredPrompt | undefined): Partial<StoredPrompt> {
  return prompt?.entryId === undefined ? {} : { entryId: prompt.entryId };
}
