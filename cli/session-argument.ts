import type { Client, SessionHandle, SessionInfo } from "../client/index.ts";
import { CommandError } from "./errors.ts";

const minPart = 4;

/** Returns the session that SESSION on the command line means. Throws `session_not_found`, `session_ambiguous`. */
export async function findSession(client: Client, word: string, signal: AbortSignal): Promise<SessionHandle> {
  const sessions = await client.listSessions({}, { signal });
  return client.session(chooseSession(sessions, word));
}

/** `sessions` are sorted newest first. Ids begin with the time, so ids of one hour differ only near their end. */
export function chooseSession(sessions: readonly Pick<SessionInfo, "sessionId">[], word: string): string {
  const ids = sessions.map(({ sessionId }) => sessionId);
  const [newest] = ids;
  if (word === "last" && newest !== undefined) return newest;
  if (ids.includes(word)) return word;
  const matching = ids.filter((id) => id.startsWith(word) || id.endsWith(word));
  const [match] = matching;
  if (match === undefined) {
    const wanted =
      word === "last" ? "No session exists yet" : `No session's id equals, begins with or ends with "${word}"`;
    throw new CommandError("session_not_found", `${wanted}. \`pi-rpcd ls\` lists them, \`pi-rpcd new\` creates one.`);
  }
  if (word.length < minPart) {
    throw new CommandError(
      "session_ambiguous",
      `"${word}" is too short: give at least ${minPart} characters of the id.`,
    );
  }
  if (matching.length > 1) {
    const some = matching.slice(0, 4).join(", ");
    const more = matching.length > 4 ? ` and ${matching.length - 4} more` : "";
    throw new CommandError("session_ambiguous", `"${word}" matches ${some}${more}: give more characters of the id.`, {
      data: { matching },
    });
  }
  return match;
}
