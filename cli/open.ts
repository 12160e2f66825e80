import { isAbsolute, resolve } from "node:path";
import type { Client } from "../client/index.ts";
import { exitCodes } from "./exit-codes.ts";
import { duration } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { noteIfSlow } from "./slow-start.ts";
import { oneLine, table } from "./text.ts";
import { withClient } from "./with-client.ts";

/** Opens a stored session, or lists the stored sessions. */
export async function open(invocation: Invocation<"open">): Promise<number> {
  const { options, output, signal } = invocation;
  const [stored] = invocation.arguments;
  return withClient(invocation, async (client) => {
    if (stored === undefined) return await list(client);
    // Ids contain no slash.
    const where = stored.includes("/") || isAbsolute(stored) ? { file: resolve(stored) } : { sessionId: stored };
    const session = await noteIfSlow(client.openSession(where, { signal }), output);
    if (output.json) output.document(session.info);
    else output.print(session.id);
    return exitCodes.done;
  });

  async function list(client: Client): Promise<number> {
    const cwd = options.cwd === undefined ? {} : { cwd: resolve(options.cwd) };
    const page = await client.call("session/list", { stored: true, ...cwd }, { signal });
    const sessions = page.stored?.sessions ?? [];
    if (output.json) {
      output.document({ sessions });
      return exitCodes.done;
    }
    if (sessions.length === 0) {
      output.aside("pi has no other sessions.");
      return exitCodes.done;
    }
    const rows = sessions.map(({ sessionId, updatedAt, name, firstMessage, cwd: directory }) =>
      [sessionId, duration(Date.now() - updatedAt), name ?? firstMessage ?? "-", directory].map(oneLine),
    );
    const [head, ...lines] = table([["SESSION", "AGE", "NAME OR FIRST MESSAGE", "DIRECTORY"], ...rows], output.columns);
    output.print(output.paint("dim", head ?? ""));
    for (const line of lines) output.print(line);
    if (page.stored?.next !== undefined)
      output.aside("The list is incomplete. --cwd DIR lists the sessions of one directory.");
    return exitCodes.done;
  }
}
