import type { Params, Result } from "../../protocol/methods.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import type { Covers } from "../core/session-scope.ts";
import type { Registry } from "./registry.ts";

const defaultLimit = 1_000;

/** A page of the sessions in `covers`, newest first. `cwd` is resolved, as in sessions. */
export function sessionPage(
  registry: Registry,
  { cwd, state, label, limit = defaultLimit, after }: Params<"session/list">,
  covers: Covers = () => true,
): Result<"session/list"> {
  const hasLabel = label === undefined ? () => true : labelFilter(label);
  const isNext = after === undefined ? () => true : isAfter(after);
  const found = registry
    .all()
    .filter((session) => (cwd === undefined || session.cwd === cwd) && covers(session.stored))
    .map((session) => session.info())
    .filter((info) => (state === undefined || info.state === state) && hasLabel(info) && isNext(info))
    .toSorted((a, b) => compare(placeOf(b), placeOf(a)));
  const sessions = found.slice(0, limit);
  const last = sessions.at(-1);
  return { sessions, ...(last !== undefined && found.length > limit ? { next: textOf(placeOf(last)) } : {}) };
}

interface Place {
  readonly createdAt: number;
  readonly sessionId: string;
}

/** A session's position in the list, which does not depend on other sessions. */
function placeOf({ createdAt, sessionId }: SessionInfo): Place {
  return { createdAt, sessionId };
}

function compare(a: Place, b: Place): number {
  if (a.createdAt !== b.createdAt) return a.createdAt - b.createdAt;
  return a.sessionId === b.sessionId ? 0 : a.sessionId < b.sessionId ? -1 : 1;
}

function textOf({ createdAt, sessionId }: Place): string {
  return `${createdAt}/${sessionId}`;
}

function isAfter(after: string): (info: SessionInfo) => boolean {
  const [createdAt = "", sessionId = ""] = after.split("/");
  const place = { createdAt: Number(createdAt), sessionId };
  return (info) => compare(placeOf(info), place) < 0;
}

function labelFilter(label: string): (info: SessionInfo) => boolean {
  const at = label.indexOf("=");
  const name = at === -1 ? label : label.slice(0, at);
  return ({ labels = {} }) => Object.hasOwn(labels, name) && (at === -1 || labels[name] === label.slice(at + 1));
}
