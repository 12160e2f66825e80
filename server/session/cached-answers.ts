import { stat } from "node:fs/promises";
import type { LRUCache } from "lru-cache";
import type { MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import { type PiCommandRoute, piCommands } from "../../protocol/pi-commands.ts";
import { within } from "../lib/deadline.ts";
import type { Child } from "../pi/child.ts";
import type { PartCalls } from "./part-calls.ts";
import { withoutLink } from "./pi-calls.ts";
import type { SessionRecord } from "./session-record.ts";

/** What one session's pi answered before it was ended. */
export interface CachedSession {
  readonly at: number;
  /** The file then; undefined where there was none. */
  readonly file: FileStamp | undefined;
  /** What the parts were configured by then. */
  readonly parts: string;
  /** JSON by method. */
  readonly answers: ReadonlyMap<string, string>;
}

interface FileStamp {
  readonly size: number;
  readonly inode: number;
  readonly mtimeMs: number;
}

export interface CachedAnswer {
  readonly value: object;
  /** When pi gave it, in Unix milliseconds. */
  readonly at: number;
}

export interface CachedAnswersOptions {
  readonly record: Pick<SessionRecord, "stored">;
  readonly parts: Pick<PartCalls, "askChild">;
  /** Those of all sessions, by their ids. */
  readonly cache: LRUCache<string, CachedSession>;
}

/** A pi that is being ended is not waited for longer. What it has not answered by then is unknown. */
const askTimeoutMs = 2_000;

/** What is asked of a pi before it ends: what only it knows, and two answers of which the session file has a part. */
const asked: readonly MethodName[] = [
  "session/getState",
  "session/getStats",
  ...(Object.keys(methods) as MethodName[]).filter((method) => (methods[method] as MethodRow).asleep === "cached"),
];

const commands: ReadonlyMap<string, string> = new Map(
  Object.entries<PiCommandRoute>(piCommands).map(([type, { method = "" }]) => [method, type]),
);

/** The last answers of a session's pi, so that a question about a session without one need not start another. */
export class CachedAnswers {
  readonly #options: CachedAnswersOptions;

  constructor(options: CachedAnswersOptions) {
    this.#options = options;
  }

  /** Asks an idle pi that is about to be ended. Never rejects. */
  async ask(child: Child): Promise<void> {
    const { record, cache } = this.#options;
    const { sessionId, file, ephemeral } = record.stored;
    if (ephemeral === true) return;
    const before = { at: Date.now(), file: await stampOf(file), parts: this.#parts() };
    const answers = new Map<string, string>();
    const questions = asked.map(async (method) => {
      const value = await this.#answer(child, method);
      if (value !== undefined) answers.set(method, JSON.stringify(value));
    });
    await within(Promise.allSettled(questions), askTimeoutMs);
    cache.set(sessionId, { ...before, answers });
  }

  /** pi's last answer to a method without params, unless the session's file or configuration has changed since. */
  async get(method: MethodName): Promise<CachedAnswer | undefined> {
    const { record, cache } = this.#options;
    const { sessionId, file, fileMark } = record.stored;
    const cached = cache.get(sessionId);
    const text = cached?.answers.get(method);
    if (cached === undefined || text === undefined || cached.parts !== this.#parts()) return undefined;
    const now = await stampOf(file);
    // A file without messages is deleted when its pi ends, and the session then has no mark of it.
    const isSame = now === undefined ? fileMark === undefined : isSameStamp(now, cached.file);
    return isSame ? { value: JSON.parse(text) as object, at: cached.at } : undefined;
  }

  /** Another pi is started, or the session is over. */
  forget(): void {
    this.#options.cache.delete(this.#options.record.stored.sessionId);
  }

  async #answer(child: Child, method: MethodName): Promise<unknown> {
    const type = commands.get(method);
    if (type === undefined) return await this.#options.parts.askChild(child, method, {});
    const { success, data } = await child.send({ type });
    if (!success || typeof data !== "object" || data === null) return undefined;
    return type === "get_commands" ? withoutLink(data, child.link.command) : data;
  }

  #parts(): string {
    const { optimisation, pruning } = this.#options.record.stored.options;
    return JSON.stringify([optimisation, pruning]);
  }
}

async function stampOf(file: string): Promise<FileStamp | undefined> {
  const found = await stat(file).catch(() => undefined);
  return found && { size: found.size, inode: found.ino, mtimeMs: found.mtimeMs };
}

function isSameStamp(one: FileStamp, other: FileStamp | undefined): boolean {
  return one.size === other?.size && one.inode === other.inode && one.mtimeMs === other.mtimeMs;
}
