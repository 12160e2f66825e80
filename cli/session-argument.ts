import type { Client, SessionHandle } from "../client/index.ts";
import { UsageError } from "./command.ts";

const shortest = 4;

/** How a session may be named on the command line, for the help text. */
export const sessionArgument = "SESSION";
export const sessionArgumentHelp = "SESSION is an id, the start or end of one, or `last`";

/** The session that an argument names: an id, at least four characters of its start or end, or `last`. */
export async function sessionOf(client: Client, argument: string): Promise<SessionHandle> {
  const sessions = await client.listSessions();
  if (argument === "last") {
    const newest = sessions[0];
    if (newest === undefined) throw new UsageError("There is no session yet. Create one with: pi-rpcd new");
    return client.session(newest.sessionId);
  }
  const fitting = sessions.filter(({ sessionId }) => fits(sessionId, argument));
  if (fitting.length > 1) throw new UsageError(`"${argument}" fits ${fitting.length} sessions; give more of the id.`);
  // An id that is not in the list gets the daemon's own answer.
  return client.session(fitting[0]?.sessionId ?? argument);
}

/** Ids begin with the time, so those of one hour differ only towards their end. */
function fits(sessionId: string, argument: string): boolean {
  return sessionId === argument || (argument.length >= shortest && (sessionId.startsWith(argument) || sessionId.endsWith(argument)));
}
