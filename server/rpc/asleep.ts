import type { MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods, type Params } from "../../protocol/methods.ts";
import { unlessAborted } from "../lib/deadline.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { entryTree } from "../session/entry-tree.ts";
import { overloaded } from "../session/pi-calls.ts";
import { refused } from "../session/prompting.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import { contextMessages, forkMessages, labelsIn, lastText, nameIn, statsOf } from "../session/stored-branch.ts";
import { readStoredEntries, type StoredEntries } from "../session/stored-entries.ts";
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

/**
 * Answers what only asks about a session without a pi, and starts none: from the session's file, or with what its pi said
 * last. Where neither can answer, the handler does, which starts a pi.
 */
export function answeredAsleep(handlers: Handlers, options: AsleepOptions): Handlers {
  const { registry, maxFileBytes, maxWaitingCalls } = options;
  // One file at a time is in memory.
  const reading = new SerialQueue({
    maxWaiting: maxWaitingCalls,
    onFull: () => overloaded(`${maxWaitingCalls} session files wait already to be read.`),
  });

  const cachedAnswer = async (session: Session, method: MethodName): Promise<object | undefined> => {
    const answer = await session.answers.get(method);
    return answer && { ...answer.value, cached: true, cachedAt: answer.at };
  };

  const fileAnswer = async (session: Session, method: FileMethod, params: Given, signal: AbortSignal) =>
    await reading.run(async () => {
      const stored = (await readStoredEntries(session, maxFileBytes)) ?? nothingStored(session);
      if (stored === undefined) return undefined;
      const answer = (fromFile[method] as AnyFromFile)(stored, session, params);
      return "cached" in answer ? answer : { ...answer, cached: true, cachedAt: stored.at };
    }, signal);

  const wrap = (method: MethodName, handler: AnyHandler): AnyHandler => {
    const { asleep } = methods[method] as MethodRow;
    if (asleep !== "file" && asleep !== "cached") return handler;
    return async (params, call) => {
      const { signal } = call;
      const session = registry.find(params.sessionId);
      if (session === undefined || !isAsleep(session) || session.stored.ephemeral === true) {
        return await handler(params, call);
      }
      // The last pi can write until it is gone.
      await unlessAborted(session.cleaned(), signal);
      const cached = await cachedAnswer(session, method);
      if (cached !== undefined) return cached;
      const read = asleep === "file" ? await fileAnswer(session, method as FileMethod, params, signal) : undefined;
      return read ?? (await handler(params, call));
    };
  };

  return Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, wrap(method as MethodName, handler as never)]),
  ) as unknown as Handlers;
}

/** A session that never got a message has no file while it has no pi. A file that another program removed is reported by the next start. */
function nothingStored({ stored }: Session): StoredEntries | undefined {
  return stored.fileMark === undefined ? { entries: [], leafId: null, at: stored.updatedAt } : undefined;
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
