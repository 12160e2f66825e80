import type { AsleepReason } from "../../protocol/cached.ts";
import { WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods, type Params } from "../../protocol/methods.ts";
import type { CachedAnswer } from "../children/cached-answers.ts";
import { overloaded } from "../children/pi-calls.ts";
import { requireCacheAudit, requirePruned } from "../context/required-parts.ts";
import { entryTree } from "../custody/entry-tree.ts";
import { contextMessages, forkMessages, labelsIn, lastText, nameIn, statsOf } from "../custody/stored-branch.ts";
import { noEntries, readStoredEntries, type StoredEntries } from "../custody/stored-entries.ts";
import { unlessAborted } from "../lib/deadline.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { refused } from "../prompts/prompting.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import { keepText } from "./answer-text.ts";
import type { Call, Handlers } from "./call.ts";
import { isAsleep } from "./session-governance.ts";

export interface AsleepOptions {
  readonly registry: Registry;
  /** A longer session file is read by pi. */
  readonly maxFileBytes: number;
  /** Files that wait until others are read. */
  readonly maxWaitingCalls: number;
}

/** The methods that a session's file answers. */
type FileMethod = {
  [M in MethodName]: (typeof methods)[M] extends { readonly asleep: "file" } ? M : never;
}[MethodName];

type FromFile = {
  readonly [M in FileMethod]: (stored: StoredEntries, session: Session, params: Params<M>) => object;
};
type AnyFromFile = (stored: StoredEntries, session: Session, params: object) => object;
type Given = Readonly<Record<string, unknown>> & { readonly sessionId: string };
type AnyHandler = (params: Given, call: Call) => unknown;

const fromFile: FromFile = {
  "session/getState": (stored, session) => stateOf(stored, session),
  "session/getMessages": (stored) => ({ messages: contextMessages(stored) }),
  "session/getEntries": ({ entries, leafId }, _session, { since }) => {
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

/** What is refused whether or not the session has a pi. */
const refusals: Partial<Record<MethodName, (stored: Session["stored"]) => void>> = {
  "pruning/inspect": requirePruned,
  "pruning/stats": requirePruned,
  "cache/report": requireCacheAudit,
};

/**
 * Answers questions about a session that has no pi, and starts none: from the session's file, or with pi's last answer. Throws
 * `session_asleep` where neither has the answer, and `session_file_unusable`. What a pi answers is remembered.
 */
export function answeredAsleep(handlers: Handlers, options: AsleepOptions): Handlers {
  const { registry, maxFileBytes, maxWaitingCalls } = options;
  // One file at a time is in memory.
  const reading = new SerialQueue({
    maxWaiting: maxWaitingCalls,
    onFull: () => overloaded(`${maxWaitingCalls} session files wait already to be read.`),
  });

  const fileAnswer = async (
    session: Session,
    method: FileMethod,
    params: Given,
    signal: AbortSignal,
  ): Promise<object | AsleepReason> =>
    await reading.run(async () => {
      const read = await readStoredEntries(session, maxFileBytes);
      const stored = read === "missing" ? noEntries(session.stored) : read;
      if (typeof stored === "string") return stored;
      const answer = (fromFile[method] as AnyFromFile)(stored, session, params);
      return "cached" in answer ? answer : { ...answer, cached: true, cachedAt: stored.at };
    }, signal);

  const asleepAnswer = async (
    session: Session,
    method: MethodName,
    isInFile: boolean,
    params: Given,
    signal: AbortSignal,
  ): Promise<object> => {
    refusals[method]?.(session.stored);
    // The last pi can write until it is gone.
    await unlessAborted(session.cleaned(), signal);
    const known = await session.answers.get(method);
    if (known !== undefined && !(isInFile && known.isOutdated)) return cachedAnswer(known);
    if (!isInFile) throw unknownAsleep(session, "not_known");
    const read = await fileAnswer(session, method as FileMethod, params, signal);
    if (typeof read !== "string") return read;
    if (known !== undefined) return cachedAnswer(known);
    throw unknownAsleep(session, read);
  };

  const wrap = (method: MethodName, handler: AnyHandler): AnyHandler => {
    const { asleep } = methods[method] as MethodRow;
    if (asleep !== "file" && asleep !== "cached") return handler;
    return async (params, call) => {
      const session = registry.find(params.sessionId);
      if (session === undefined || session.stored.ephemeral === true) return await handler(params, call);
      if (isAsleep(session)) return await asleepAnswer(session, method, asleep === "file", params, call.signal);
      if (asleep === "file") return await handler(params, call);
      const stamp = await session.answers.stamp();
      // Its pi may have ended meanwhile.
      if (isAsleep(session)) return await asleepAnswer(session, method, false, params, call.signal);
      const answer = await handler(params, call);
      session.answers.note(method, answer, stamp);
      return answer;
    };
  };

  return Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, wrap(method as MethodName, handler as never)]),
  ) as unknown as Handlers;
}

function cachedAnswer({ value, at, isOutdated }: CachedAnswer): object {
  return { ...value, cached: true, cachedAt: at, ...(isOutdated ? { outdated: true } : {}) };
}

const why: Readonly<Record<AsleepReason, string>> = {
  not_known: "no answer of an earlier pi is known",
  file_too_large: "its file is too long to be read without one",
  file_older_form: "its file has an older form, which only pi reads",
};

function unknownAsleep({ sessionId }: Session, reason: AsleepReason): WireError {
  const how = "session/command, a prompt, or session/subscribe with awake: true starts one; then ask again";
  return new WireError("session_asleep", `The session ${sessionId} has no pi, and ${why[reason]}; ${how}.`, {
    sessionId,
    reason,
  });
}

/** What the file and the session's record know of pi's state. */
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
