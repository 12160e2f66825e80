import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { findSession } from "./session-argument.ts";
import { withClient } from "./with-client.ts";

/** Ends a session's pi and forgets the session. */
export async function close(invocation: Invocation<"close">): Promise<number> {
  const { output, signal } = invocation;
  const [word = ""] = invocation.arguments;
  return withClient(invocation, async (client) => {
    const session = await findSession(client, word, signal);
    const result = await session.close({ signal });
    if (output.json) output.document({ closed: session.id, ...result });
    else output.print(`${session.id} is closed; its transcript is kept.`);
    return exitCodes.done;
  });
}
