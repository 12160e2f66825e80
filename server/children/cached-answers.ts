import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import type { LRUCache } from "lru-cache";
import { WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import type { PartCalls } from "../context/part-calls.ts";
import type { SessionContext } from "../core/session-context.ts";
import { within } from "../lib/deadline.ts";
import type { Child } from "../pi/child.ts";
import type { SessionTextStore } from "../store/session-texts.ts";
import { withoutLink } from "./pi-calls.ts";

/** The state of a session when its pi answered. */
export interface AnswerStamp {
  /** Unix milliseconds. */
  readonly at: number;
  /** The session's file; null if there was none. */
  readonly file: FileStamp | null;
  /** A hash of the configuration of its parts. */
  readonly parts: string;
}

interface FileStamp {
  readonly size: number;
  readonly inode: number;
  readonly mtimeMs: number;
}

interface KnownAnswer extends AnswerStamp {
  /** JSON. */
  readonly text: string;
}

/** A session's last answers, by method. */
export type KnownAnswers = ReadonlyMap<string, KnownAnswer>;

export interface CachedAnswer {
  readonly value: object;
  /** When pi answered, in Unix milliseconds. */
  readonly at: number;
  /** The session's file or configuration has changed since. */
  readonly isOutdated: boolean;
}

export interface CachedAnswersOptions {
  readonly parts: Pick<PartCalls, "askChild">;
  /** The answers of all sessions, by session id. */
  readonly cache: LRUCache<string, KnownAnswers>;
  readonly store: SessionTextStore;
  /** A longer answer is not cached. */
  readonly maxBytes: number;
}

/** Maximum wait for a pi that is about to end. */
const askTimeoutMs = 2_000;

const rows: Readonly<Record<MethodName, MethodRow>> = methods;

/** Queries for a pi before it ends, because the session file lacks their answers, or a part of them. */
const asked = (Object.keys(methods) as MethodName[]).filter(
  (method) => rows[method].asleep === "cached" || rows[method].alsoCached === true,
);

/**
 * The last answers of a session's pi, so that a query about a session without a pi need not start one, and a call with
 * `cached` asks none. They are stored when pi ends in any way, and survive the daemon. One for each method, of at most
 * `maxBytes`; the cache bounds those of all sessions, and forgets those of running pis that were not used for longest.
 */
export class CachedAnswers {
  readonly #session: SessionContext;
  readonly #options: CachedAnswersOptions;
  /** Whether some cached answers are not stored. */
  #isUnsaved = false;

  constructor(session: SessionContext, options: CachedAnswersOptions) {
    this.#session = session;
    this.#options = options;
    session.events.on("stateChanged", ({ kind }) => {
      if (kind === "hibernated" || kind === "crashed") this.#save();
    });
  }

  /** Queries an idle pi that is about to be ended. Never rejects. */
  async ask(child: Child): Promise<void> {
    const { ephemeral } = this.#session.record.stored;
    if (ephemeral === true) return;
    const stamp = await this.stamp();
    const questions = asked.map(async (method) => {
      try {
        this.note(method, await this.#answer(child, method), stamp);
      } catch (error) {
        // pi now refuses, for example because the part is off.
        if (error instanceof WireError && error.kind !== "child_exited") this.#set(method, undefined);
      }
    });
    await within(Promise.allSettled(questions), askTimeoutMs);
    this.#save();
  }

  /** The current state of the session. Take it before the query. */
  async stamp(): Promise<AnswerStamp> {
    const { file } = this.#session.record.stored;
    return { at: Date.now(), file: (await stampOf(file)) ?? null, parts: this.#parts() };
  }

  /** Caches pi's answer to a method without params. */
  note(method: MethodName, value: unknown, stamp: AnswerStamp): void {
    if (value === undefined || this.#session.record.stored.ephemeral === true) return;
    const text = JSON.stringify(value);
    if (Buffer.byteLength(text) <= this.#options.maxBytes) this.#set(method, { ...stamp, text });
  }

  /** pi's last answer to a method without params. Throws `store_failed` if the disk does not answer. */
  async get(method: MethodName): Promise<CachedAnswer | undefined> {
    const { file: path, fileMark } = this.#session.record.stored;
    const known = this.#known().get(method);
    if (known === undefined) return undefined;
    const { text, at, file, parts } = known;
    const now = await stampOf(path);
    // A file without messages is deleted when its pi ends, so the session then has no file mark.
    const isSame = now === undefined ? fileMark === undefined : isSameStamp(now, file);
    return { value: JSON.parse(text) as object, at, isOutdated: !isSame || parts !== this.#parts() };
  }

  /** The session is over. */
  forget(): void {
    this.#isUnsaved = false;
    this.#options.cache.delete(this.#sessionId);
    // Failed writes are retried.
    this.#options.store.delete(this.#sessionId).catch(() => {});
  }

  get #sessionId(): string {
    return this.#session.sessionId;
  }

  /** Stores the cached answers, because the session no longer has a pi. */
  #save(): void {
    if (!this.#isUnsaved) return;
    this.#isUnsaved = false;
    this.#options.store.put(this.#sessionId, JSON.stringify([...this.#known()])).catch((error: unknown) => {
      this.#session.log.warn({ err: error }, "cannot store the last answers of a session's pi; will retry");
    });
  }

  #known(): KnownAnswers {
    const { cache, store } = this.#options;
    const cached = cache.get(this.#sessionId);
    if (cached !== undefined) return cached;
    const known: KnownAnswers = new Map(JSON.parse(store.get(this.#sessionId) ?? "[]") as [string, KnownAnswer][]);
    cache.set(this.#sessionId, known);
    return known;
  }

  #set(method: MethodName, answer: KnownAnswer | undefined): void {
    const known = new Map(this.#known());
    if (answer === undefined) known.delete(method);
    else known.set(method, answer);
    this.#options.cache.set(this.#sessionId, known);
    this.#isUnsaved = true;
  }

  async #answer(child: Child, method: MethodName): Promise<unknown> {
    const type = rows[method].pi?.command;
    if (type === undefined) return await this.#options.parts.askChild(child, method, {});
    const { success, data } = await child.send({ type });
    if (!success || typeof data !== "object" || data === null) return undefined;
    return type === "get_commands" ? withoutLink(data, child.link.command) : data;
  }

  #parts(): string {
    const { optimisation, pruning } = this.#session.record.stored.options;
    return createHash("sha256")
      .update(JSON.stringify([optimisation, pruning]))
      .digest("base64url");
  }
}

async function stampOf(file: string): Promise<FileStamp | undefined> {
  const found = await stat(file).catch(() => undefined);
  return found && { size: found.size, inode: found.ino, mtimeMs: found.mtimeMs };
}

function isSameStamp(one: FileStamp, other: FileStamp | null): boolean {
  return one.size === other?.size && one.inode === other.inode && one.mtimeMs === other.mtimeMs;
}
