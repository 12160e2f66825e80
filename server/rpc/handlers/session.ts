import { realpath } from "node:fs/promises";
import type { Params, Result } from "../../../protocol/methods.ts";
import { defined } from "../../../protocol/objects.ts";
import type { sessionMethods } from "../../../protocol/session-methods.ts";
import type { Covers } from "../../core/session-scope.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import { Gate } from "../../lib/gate.ts";
import type { Registry } from "../../session/registry.ts";
import type { Session } from "../../session/session.ts";
import { type RowPage, resultOf, rowPage, sessionPage } from "../../session/session-page.ts";
import { keepText } from "../answer-text.ts";
import type { HandlersOf } from "../call.ts";
import { callerOf } from "./context.ts";

/** After this time, for example on a slow disk, the next listing of the token begins. */
const maxListingMs = 10_000;

export function sessionHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof sessionMethods> {
  // Only one listing of files at a time for each token, because each opens hundreds of files.
  const listings = new WeakMap<object, Gate>();
  const listingOf = (token: object): Gate => {
    const gate = listings.get(token) ?? new Gate(1, maxListingMs);
    listings.set(token, gate);
    return gate;
  };
  const listed = listAnswers();
  return {
    "session/create": async (params, call) => {
      const { effect, grant } = call;
      const caller = { ...callerOf(call), isRepeated: effect?.isRepeated === true };
      const id = effect?.id ?? params.sessionId;
      if (grant?.isLimited !== true) return created(await registry.create(params, id, () => {}, caller));
      const { labels, promptTemplates, file } = params;
      const limited = {
        ...params,
        ...grant.labelled(labels),
        ...(promptTemplates !== undefined && { promptTemplates: await grant.inside(promptTemplates) }),
        ...(file !== undefined && { file: (await grant.inside([file]))[0] ?? file }),
      };
      return created(await registry.create(limited, id, (scope) => grant.requireInside(scope), caller));
    },
    "session/list": (params, call) => {
      const { grant } = call;
      if (params.cwd === undefined && params.stored !== true) return listed(rowPage(registry, params, grant?.limits));
      const list = () => listWithFiles(registry, params, grant?.limits, call.signal);
      return params.stored === true ? listingOf(grant ?? registry).pass(list, { signal: call.signal }) : list();
    },
    "session/get": ({ sessionId }) => registry.get(sessionId).info(),
    "session/hibernate": async ({ sessionId, force = false }) => {
      const session = registry.get(sessionId);
      await session.supervisor.hibernate(force);
      return session.info();
    },
    "session/close": async ({ sessionId }, { by }) => {
      const underWay = tracker.underWay(sessionId);
      const exit = await registry.get(sessionId).attribution.acting(by, () => registry.close(sessionId));
      return { ...(exit === undefined ? {} : { exit }), deliveries: await tracker.effects(underWay) };
    },
  };
}

/** A longer list is serialised for each answer. */
const maxKeptChars = 1024 * 1024;

/**
 * Returns a function that makes the answer of a page from the JSON of its rows. While the rows are the same, it returns
 * the last answer again: clients that poll the list get it without more work. Rows that differ in anything are others.
 */
export function listAnswers(): (page: RowPage) => Result<"session/list"> {
  let last: { readonly page: RowPage; readonly result: Result<"session/list"> } | undefined;
  return (page) => {
    if (last !== undefined && isSame(last.page, page)) return last.result;
    const { rows, next } = page;
    const end = next === undefined ? "" : `,"next":${JSON.stringify(next)}`;
    const text = `{"sessions":[${rows.map((row) => row.text).join(",")}]${end}}`;
    const result = keepText(resultOf(page), text);
    last = text.length <= maxKeptChars ? { page, result } : undefined;
    return result;
  };
}

function isSame(a: RowPage, b: RowPage): boolean {
  return a.next === b.next && a.rows.length === b.rows.length && a.rows.every((row, i) => row === b.rows[i]);
}

/** A page with sessions that are found on disk. */
async function listWithFiles(
  registry: Registry,
  { cwd: given, stored, storedAfter, storedLimit, ...params }: Params<"session/list">,
  covers: Covers | undefined,
  signal: AbortSignal,
): Promise<Result<"session/list">> {
  const cwd = given === undefined ? undefined : await realpath(given).catch(() => given);
  const listed = sessionPage(registry, cwd === undefined ? params : { ...params, cwd }, covers);
  if (stored !== true) return listed;
  const { next, ...page } = await registry.files.stored({
    cwd,
    after: storedAfter,
    limit: storedLimit,
    covers,
    signal,
  });
  const messages = await registry.files.firstMessages(listed.sessions.map(({ file }) => file));
  const sessions = listed.sessions.map((session, index) => ({
    ...session,
    ...defined({ firstMessage: messages[index] }),
  }));
  return { ...listed, sessions, stored: { sessions: [...page.sessions], ...(next === undefined ? {} : { next }) } };
}

function created(session: Session): Result<"session/create"> {
  const { context } = session.stored;
  const { error } = session.context;
  return {
    ...session.info(),
    ...(context === undefined ? {} : { context: context.summary }),
    ...(error === undefined ? {} : { contextError: error }),
  };
}
