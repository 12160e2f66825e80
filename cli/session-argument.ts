import { basename } from "node:path";
import type { Client, SessionHandle, SessionInfo } from "../client/index.ts";
import { CommandError } from "./errors.ts";
import { shortId } from "./format.ts";
import { oneLine, table } from "./text.ts";

/** The facts by which a session can be chosen. */
export type SessionChoice = Pick<SessionInfo, "sessionId" | "name" | "cwd">;

/** How a word on the command line can mean a session. */
export interface Choosing {
  /** Whether a part of the name or of the directory's name is enough. Default true. */
  readonly parts?: boolean;
}

const minPart = 4;
const shownCandidates = 10;

/** Returns the session that SESSION on the command line means. Throws the errors of {@link chooseSession}. */
export async function findSession(
  client: Client,
  word: string,
  signal: AbortSignal,
  choosing?: Choosing,
): Promise<SessionHandle> {
  const sessions = await client.listSessions({}, { signal });
  return client.session(chooseSession(sessions, word, choosing));
}

/**
 * Returns the id of the session that a word means. `sessions` are sorted newest first. Ids begin with the time, so that
 * ids of several hours differ only near their end. Throws `session_not_found`, `session_ambiguous`.
 *
 * Extensions choose names. A name must not make a word mean another session than its id or `last` would.
 */
export function chooseSession(sessions: readonly SessionChoice[], word: string, choosing?: Choosing): string {
  const found = word === "last" ? matchingLast(sessions) : matching(sessions, word, choosing);
  const [match] = found;
  if (match !== undefined && found.length === 1) return match.sessionId;
  if (match !== undefined) throw ambiguous(found, word);
  const isClose = (session: SessionChoice): boolean =>
    choosing?.parts === false ? isEndOf(session.sessionId, word) : isPartOf(session, word);
  if (word !== "" && word.length < minPart && sessions.some(isClose)) {
    throw new CommandError("session_ambiguous", `"${word}" is too short: give at least ${minPart} characters.`);
  }
  if (choosing?.parts === false) {
    const similar = matching(sessions, word);
    throw new CommandError("session_not_found", `No session has the id or the complete name "${word}".`, {
      lines: similar.length === 0 ? [] : ["Did you mean one of these?", ...candidates(similar)],
    });
  }
  const wanted = word === "last" ? "No session exists yet" : `No session's id, name or directory matches "${word}"`;
  throw new CommandError("session_not_found", `${wanted}. \`pi-rpcd ls\` lists them, \`pi-rpcd new\` creates one.`);
}

/** The sessions that `last` can mean: the one with this id, otherwise the newest, and those with this name. */
function matchingLast(sessions: readonly SessionChoice[]): readonly SessionChoice[] {
  const exact = sessions.filter(({ sessionId }) => sessionId === "last");
  return exact.length > 0 ? exact : sessions.filter(({ name }, index) => index === 0 || name === "last");
}

/** The sessions that a word means: those of the first comparison that any session passes. */
export function matching<S extends SessionChoice>(
  sessions: readonly S[],
  word: string,
  { parts = true }: Choosing = {},
): readonly S[] {
  const isLong = word.length >= minPart;
  const comparisons: readonly ((session: S) => boolean)[] = [
    ({ sessionId }) => sessionId === word,
    ({ sessionId, name }) => (word !== "" && name === word) || (isLong && isEndOf(sessionId, word)),
    ({ cwd }) => parts && word !== "" && basename(cwd) === word,
    (session) => parts && isLong && isPartOf(session, word),
  ];
  for (const comparison of comparisons) {
    const found = sessions.filter(comparison);
    if (found.length > 0) return found;
  }
  return [];
}

function isPartOf({ sessionId, name = "", cwd }: SessionChoice, word: string): boolean {
  const lower = word.toLowerCase();
  return isEndOf(sessionId, word) || [name, basename(cwd)].some((text) => text.toLowerCase().includes(lower));
}

function isEndOf(id: string, word: string): boolean {
  return id.startsWith(word) || id.endsWith(word);
}

/**
 * The id of a dialog or delivery that a word means: an id, or at least 4 characters of the start or end of one. Undefined:
 * none matches. Throws `dialog_ambiguous`, `delivery_ambiguous`.
 */
export function chooseId(ids: readonly string[], word: string, what: "dialog" | "delivery"): string | undefined {
  if (ids.includes(word)) return word;
  const found = ids.filter((id) => word !== "" && isEndOf(id, word));
  const [match] = found;
  if (match === undefined || (word.length >= minPart && found.length === 1)) return match;
  const why =
    word.length < minPart
      ? `is too short: give at least ${minPart} characters`
      : `matches ${found.slice(0, 4).join(", ")}: give more characters`;
  throw new CommandError(`${what}_ambiguous`, `"${word}" ${why} of the id.`, { data: { matching: found } });
}

function ambiguous(found: readonly SessionChoice[], word: string): CommandError {
  return new CommandError("session_ambiguous", `"${word}" matches ${found.length} sessions. Choose one by its id:`, {
    data: { matching: found.map(({ sessionId, name, cwd }) => ({ sessionId, name, cwd })) },
    lines: candidates(found),
  });
}

/** A line for each session: its id, name and directory. */
function candidates(found: readonly SessionChoice[]): readonly string[] {
  const ids = found.map(({ sessionId }) => shortId(sessionId));
  const areUnique = new Set(ids).size === ids.length;
  const rows = found
    .slice(0, shownCandidates)
    .map(({ sessionId, name, cwd }) => [areUnique ? shortId(sessionId) : sessionId, name ?? "-", cwd].map(oneLine));
  const more = found.length - rows.length;
  return [...table(rows), ...(more > 0 ? [`and ${more} more: pi-rpcd ls`] : [])];
}
