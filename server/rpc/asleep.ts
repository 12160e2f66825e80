import type { AsleepReason } from "../../protocol/cached.ts";
import { WireError } from "../../protocol/errors.ts";
import { takesCached } from "../../protocol/method-row.ts";
import type { MethodName, methods } from "../../protocol/methods.ts";
import type { CachedAnswer } from "../children/cached-answers.ts";
import { overloaded } from "../children/pi-calls.ts";
import { entryTree } from "../custody/entry-tree.ts";
import { contextMessages, forkMessages, labelsIn, lastText, nameIn, statsOf } from "../custody/stored-branch.ts";
import { noEntries, readStoredEntries, type StoredEntries } from "../custody/stored-entries.ts";
import { unlessAborted } from "../lib/deadline.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { refused } from "../prompts/prompting.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import { keepText } from "./answer-text.ts";
import type { Policy } from "./call.ts";
import { paramOf } from "./params.ts";

export interface AsleepOptions {
  readonly registry: Registry;
  /** pi reads longer session files. */
  readonly maxFileBytes: number;
  /** Maximum number of calls that wait for a file to be read. */
  readonly maxWaitingCalls: number;
}

type FromFile = (stored: StoredEntries, session: Session, params: object) => object;

/** The methods whose row says that the session's file has the answer. */
type FileMethod = {
  [M in MethodName]: (typeof methods)[M] extends { readonly asleep: "file" } ? M : never;
}[MethodName];

const fromFile: Readonly<Record<FileMethod, FromFile>> = {
  "session/getState": (stored, session) => stateOf(stored, session),
  "session/getMessages": (stored) => ({ messages: contextMessages(stored) }),
  "session/getEntries": ({ entries, leafId }, _session, params) => {
    const since = paramOf(params, "since");
    const place = since === undefined ? -1 : entries.findIndex(({ id }) => id === since);
    if (since !== undefined && place === -1) {
      const error = `Entry not found: ${since}`;
      throw refused("get_entries", { type: "response", command: "get_entries", success: false, error });
    }
    return { entries: entries.slice(place + 1), leafId };
  },
  "session/getTree": (stored) => {
    const { value, text } = entryTree(stored);
    const cached = { cached: true, cachedAt: stored.at };
    return keepText({ ...value, ...cached }, `${text.slice(0, -1)},${JSON.stringify(cached).slice(1)}`);
  },
  "session/getForkMessages": (stored) => ({ messages: forkMessages(stored) }),
  "session/getLastText": (stored) => ({ text: lastText(stored) }),
  "session/getStats": (stored, { file: sessionFile, sessionId }) => ({ sessionFile, sessionId, ...statsOf(stored) }),
  "session/listLabels": ({ entries }) => ({ labels: labelsIn(entries) }),
};

/** Whether a session has no pi, so that a method that needs one starts it. */
export function isAsleep({ state: { kind } }: Session): boolean {
  return kind === "hibernated" || kind === "crashed";
}

/**
 * Answers queries about a session without a pi, and starts none: from the session's file, or with pi's last answer. Throws
 * `session_asleep` if neither has the answer, and `session_file_unusable`. Remembers the answers of a pi. Calls with
 * `cached` get the same in any state of the session, or `answer_unknown`.
 */
export function answerAsleep({ registry, maxFileBytes, maxWaitingCalls }: AsleepOptions): Policy {
  // Only one file at a time is in memory.
  const reading = new SerialQueue({
    maxWaiting: maxWaitingCalls,
    onFull: () => overloaded(`${maxWaitingCalls} calls are already waiting for session files to be read.`),
  });

  const fileAnswer = async (
    session: Session,
    answerFrom: FromFile,
    params: object,
    signal: AbortSignal,
  ): Promise<object | AsleepReason> =>
    await reading.run(async () => {
      const read = await readStoredEntries(session, maxFileBytes);
      const stored = read === "missing" ? noEntries(session.stored) : read;
      if (typeof stored === "string") return stored;
      const answer = answerFrom(stored, session, params);
      return "cached" in answer ? answer : { ...answer, cached: true, cachedAt: stored.at };
    }, signal);

  return ({ name, row }, next) => {
    const isRemembered = row.asleep === "cached" || takesCached(row);
    if (row.asleep !== "file" && !isRemembered) return next;
    const answerFrom = isFileMethod(name) ? fromFile[name] : undefined;

    /** The answer that needs no pi, or why there is none. */
    const knownAnswer = async (
      session: Session,
      params: object,
      signal: AbortSignal,
    ): Promise<object | AsleepReason> => {
      const known = await session.answers.get(name);
      if (known !== undefined && !(answerFrom !== undefined && known.isOutdated)) return cachedAnswer(known);
      if (answerFrom === undefined) return "not_known";
      const read = await fileAnswer(session, answerFrom, params, signal);
      return typeof read === "string" && known !== undefined ? cachedAnswer(known) : read;
    };

    const asleepAnswer = async (session: Session, params: object, signal: AbortSignal): Promise<object> => {
      // The last pi can write until it has been cleaned up.
      await unlessAborted(session.cleaned(), signal);
      const found = await knownAnswer(session, params, signal);
      if (typeof found === "string") throw unknownAsleep(session, found);
      return found;
    };

    /** For a call with `cached`. */
    const cachedOnly = async (session: Session, params: object, signal: AbortSignal): Promise<object> => {
      const isKept = session.stored.ephemeral !== true;
      const found = isKept ? await knownAnswer(session, params, signal) : "not_known";
      if (typeof found === "string") throw unknownAnswer(found);
      return found;
    };

    const answersAsleep = (session: Session): boolean => row.asleep !== "wake" && isAsleep(session);

    return async (params, call) => {
      const sessionId = paramOf(params, "sessionId");
      const session = typeof sessionId === "string" ? registry.find(sessionId) : undefined;
      if (session === undefined) return await next(params, call);
      if (paramOf(params, "cached") === true) return await cachedOnly(session, params, call.signal);
      if (session.stored.ephemeral === true) return await next(params, call);
      if (answersAsleep(session)) return await asleepAnswer(session, params, call.signal);
      if (!isRemembered) return await next(params, call);
      const stamp = await session.answers.stamp();
      // Its pi may have ended in the meantime.
      if (answersAsleep(session)) return await asleepAnswer(session, params, call.signal);
      const answer = await next(params, call);
      session.answers.note(name, answer, stamp);
      return answer;
    };
  };
}

function isFileMethod(name: MethodName): name is FileMethod {
  return Object.hasOwn(fromFile, name);
}

function cachedAnswer({ value, at, isOutdated }: CachedAnswer): object {
  return { ...value, cached: true, cachedAt: at, ...(isOutdated ? { outdated: true } : {}) };
}

const why: Readonly<Record<AsleepReason, string>> = {
  not_known: "no answer of an earlier pi is known",
  file_too_large: "its file is too large to be read without one",
  file_older_form: "its file has an older format, which only pi reads",
};

/** For calls with `cached`. */
export function unknownAnswer(reason: AsleepReason): WireError {
  return new WireError("answer_unknown", `The answer is not known without asking pi: ${why[reason]}.`, { reason });
}

export function unknownAsleep({ sessionId }: Session, reason: AsleepReason): WireError {
  const how = "session/command, a prompt, or session/subscribe with awake: true starts one; then call again";
  return new WireError("session_asleep", `The session ${sessionId} has no pi, and ${why[reason]}; ${how}.`, {
    sessionId,
    reason,
  });
}

/** The part of pi's state that the file and the session's record have. */
function stateOf(found: StoredEntries, { stored, file, sessionId }: Session): object {
  const { model = "", thinking } = stored.options;
  const [provider = "", ...id] = model.split("/");
  const sessionName = nameIn(found);
  return {
    ...(id.length === 0 ? {} : { model: { provider, id: id.join("/") } }),
    ...(thinking === undefined ? {} : { thinkingLevel: thinking }),
    isStreaming: false,
    isCompacting: false,
    sessionFile: file,
    sessionId,
    ...(sessionName === undefined ? {} : { sessionName }),
    messageCount: contextMessages(found).length,
    pendingMessageCount: 0,
  };
}
