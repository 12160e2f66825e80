import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { findSession } from "./session-argument.ts";
import { withClient } from "./with-client.ts";

/** Ends a session's pi and keeps the session. */
export async function hibernate(invocation: Invocation<"hibernate">): Promise<number> {
  const { options, output, signal } = invocation;
  const [word = ""] = invocation.arguments;
  return withClient(invocation, async (client) => {
    const { id: sessionId } = await findSession(client, word, signal);
    const force = options.force === true;
    const info = await client.call("session/hibernate", { sessionId, ...(force && { force }) }, { signal });
    if (output.json) output.document(info);
    else output.print(`${sessionId} is ${info.state}.`);
    return exitCodes.done;
  });
}
