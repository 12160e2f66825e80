import { UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { findSession } from "./session-argument.ts";
import { withClient } from "./with-client.ts";

/** Deletes a session and its transcript. */
export async function rm(invocation: Invocation<"rm">): Promise<number> {
  const { options, output, signal } = invocation;
  const [word = ""] = invocation.arguments;
  if (options.yes !== true) throw new UsageError("This deletes the transcript permanently: confirm with --yes.", "rm");
  return withClient(invocation, async (client) => {
    const session = await findSession(client, word, signal, { parts: false });
    await session.delete({ signal });
    if (output.json) output.document({ deleted: session.id });
    else output.print(`${session.id} is deleted.`);
    return exitCodes.done;
  });
}
