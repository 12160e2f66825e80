import type { Params, Result } from "../../protocol/methods.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import { byAge, type SessionAge } from "../core/session-record.ts";
import type { Covers } from "../core/session-scope.ts";
import type { Registry } from "./registry.ts";
import type { SessionRow } from "./session-row.ts";

const defaultLimit = 1_000;

/** Rows of sessions, and where the next page begins. */
export interface RowPage {
  readonly rows: readonly SessionRow[];
  readonly next?: string;
}

/** A page of the sessions in `covers`, newest first. `cwd` is resolved, as in sessions. */
export function sessionPage(
  registry: Registry,
  params: Params<"session/list">,
  covers?: Covers,
): Result<"session/list"> {
  return resultOf(rowPage(registry, params, covers));
}

/** As {@link sessionPage}, with the JSON of each session. */
export function rowPage(
  registry: Registry,
  { cwd, state, label, limit = defaultLimit, after }: Params<"session/list">,
  covers: Covers = () => true,
): RowPage {
  const hasLabel = label === undefined ? () => true : labelFilter(label);
  const isNext = after === undefined ? () => true : isAfter(after);
  const found = registry
    .all()
    .filter((session) => (cwd === undefined || session.cwd === cwd) && covers(session.stored))
    .map((session) => session.row())
    .filter(({ info }) => (state === undefined || info.state === state) && hasLabel(info) && isNext(info))
    .sort((a, b) => byAge(b.info, a.info));
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return { rows, ...(last !== undefined && found.length > limit ? { next: textOf(last.info) } : {}) };
}

export function resultOf({ rows, ...next }: RowPage): Result<"session/list"> {
  return { sessions: rows.map(({ info }) => info), ...next };
}

function textOf({ createdAt, sessionId }: SessionAge): string {
  return `${createdAt}/${sessionId}`;
}

function isAfter(after: string): (info: SessionInfo) => boolean {
  const [createdAt = "", sessionId = ""] = after.split("/");
  const place = { createdAt: Number(createdAt), sessionId };
  return (info) => byAge(info, place) < 0;
}

function labelFilter(label: string): (info: SessionInfo) => boolean {
  const at = label.indexOf("=");
  const name = at === -1 ? label : label.slice(0, at);
  return ({ labels = {} }) => Object.hasOwn(labels, name) && (at === -1 || labels[name] === label.slice(at + 1));
}
