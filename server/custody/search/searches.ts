import { extname } from "node:path";
import { WireError } from "../../../protocol/errors.ts";
import type { Params, Result } from "../../../protocol/methods.ts";
import type { Unsearched } from "../../../protocol/transcript-methods.ts";
import { limits } from "../../configuration/limits.ts";
import { byAge, type SessionAge } from "../../core/session-record.ts";
import { Gate } from "../../lib/gate.ts";
import { JobThreads, ThreadEndError } from "../../lib/job-thread.ts";
import { searchPlaceIn, searchPlaceText } from "../transcript-places.ts";
import type { SearchAnswer, SearchedFile, SearchOrder, ThreadUnsearched } from "./file-search.ts";

/** A session that is searched. */
export interface SearchedSession extends SearchedFile, SessionAge {
  readonly sessionId: string;
  /** Whether the file had entries when it was last seen. */
  readonly hasEntries: boolean;
}

type SearchParams = Omit<Params<"transcript/search">, "sessionId">;
export type SearchLimits = typeof limits.search;

/** Searches session files in threads of their own. */
export class Searches {
  readonly #limits: SearchLimits;
  readonly #threads: JobThreads;
  readonly #gate: Gate;

  constructor(of: SearchLimits = limits.search) {
    this.#limits = of;
    this.#threads = new JobThreads({
      entry: new URL(`./search-thread${extname(import.meta.filename)}`, import.meta.url),
      name: "search",
      maxHeapMiB: of.maxSearchThreadMiB,
      timeoutMs: of.maxSearchThreadMs,
    });
    this.#gate = new Gate(of.maxSearchThreads, of.maxSearchThreadMs);
  }

  /** `sessions`: the newest first. Throws `invalid_params`, `overloaded`, `shutting_down`. */
  async search(
    sessions: readonly SearchedSession[],
    params: SearchParams,
    signal: AbortSignal,
  ): Promise<Result<"transcript/search">> {
    const { query, before, limit = 50 } = params;
    if (!query.isWellFormed()) throw notWellFormed();
    const place = before === undefined ? undefined : searchPlaceIn(before);
    const first = place === undefined ? 0 : sessions.findIndex((session) => byAge(session, place) <= 0);
    const left = first === -1 ? [] : sessions.slice(first);
    const { maxSearchBytes: maxBytes, maxSearchMs: maxMs, maxUnsearched } = this.#limits;
    const order: SearchOrder = {
      ...{ query, maxHits: limit, maxUnsearched, maxBytes, maxMs },
      sessions: left.map(({ sessionId, file, isEphemeral }) => ({ sessionId, file, isEphemeral })),
      from: left[0]?.sessionId === place?.sessionId ? place?.file : undefined,
    };
    const answer = left.length === 0 ? nothing : await this.#gate.pass(() => this.#inThread(order, signal), { signal });
    const { index = left.length, place: file } = answer.next ?? {};
    const next = left[index];
    const unsearched = answer.unsearched.flatMap((one) => known(one, sessions));
    return {
      hits: [...answer.hits],
      ...(next !== undefined && { before: searchPlaceText({ ...next, file }) }),
      sessions: sessions.length,
      sessionsLeft: left.length - index,
      bytes: answer.bytes,
      ...(unsearched.length > 0 && { unsearched }),
    };
  }

  async #inThread(order: SearchOrder, signal: AbortSignal): Promise<SearchAnswer> {
    try {
      return await this.#threads.answerTo<SearchAnswer>(order, signal);
    } catch (error) {
      if (!(error instanceof ThreadEndError)) throw error;
      if (error.end === "ended") throw new WireError("shutting_down", "The daemon is shutting down.");
      throw overloaded(this.#why(error));
    }
  }

  #why({ end, errorName }: ThreadEndError): string {
    if (end === "late") return `The search took longer than ${this.#limits.maxSearchThreadMs / 1_000} s.`;
    return end === "memory" ? "The search needs too much memory." : `The search failed: ${errorName}.`;
  }
}

const nothing: SearchAnswer = { hits: [], unsearched: [], bytes: 0, next: undefined };

/** A file is missing until the first message. */
function known({ why, ...one }: ThreadUnsearched, sessions: readonly SearchedSession[]): Unsearched[] {
  if (why !== "file_missing") return [{ ...one, why }];
  const isLost = sessions.some(({ sessionId, hasEntries }) => hasEntries && sessionId === one.sessionId);
  return isLost ? [{ ...one, why: "file_unusable" }] : [];
}

function overloaded(message: string): WireError {
  return new WireError("overloaded", message, { retryAfterMs: 1_000 });
}

function notWellFormed(): WireError {
  const findings = [{ path: "/query", message: "has a half of a surrogate pair" }];
  return new WireError("invalid_params", "The text has a half of a surrogate pair.", { findings });
}
