import { isAbsolute, resolve } from "node:path";
import type { Client, Result } from "../client/index.ts";
import { exitCodes } from "./exit-codes.ts";
import { duration, homeRelative, shortId } from "./format.ts";
import type { Invocation } from "./invocation.ts";
import { chooseSession, matching } from "./session-argument.ts";
import { noteIfSlow } from "./slow-start.ts";
import { oneLine, table } from "./text.ts";
import { withClient } from "./with-client.ts";

type StoredSession = NonNullable<Result<"session/list">["stored"]>["sessions"][number];

/** How many pages of 500 stored sessions are searched for a part of an id or a name. */
const maxPages = 20;

/** Opens a stored session, or lists the stored sessions. */
export async function open(invocation: Invocation<"open">): Promise<number> {
  const { options, output, env, signal } = invocation;
  const [stored] = invocation.arguments;
  return withClient(invocation, async (client) => {
    if (stored === undefined) return await list(client);
    // Ids contain no slash.
    const isFile = stored.includes("/") || isAbsolute(stored);
    const where = isFile ? { file: resolve(stored) } : { sessionId: await idOf(client, stored) };
    const session = await noteIfSlow(client.openSession(where, { signal }), output);
    if (output.json) output.document(session.info);
    else output.print(session.id);
    return exitCodes.done;
  });

  /** The stored session that a word means; another word is returned unchanged, for the daemon. */
  async function idOf(client: Client, word: string): Promise<string> {
    if (shortId(word) !== word) return word;
    const found: StoredSession[] = [];
    for (let storedAfter: string | undefined, page = 0; page < maxPages; page += 1) {
      const query = { stored: true, storedLimit: 500, ...(storedAfter === undefined ? {} : { storedAfter }) };
      const listed = await client.call("session/list", query, { signal });
      found.push(...(listed.stored?.sessions ?? []));
      storedAfter = listed.stored?.next;
      if (storedAfter === undefined) break;
    }
    return matching(found, word).length === 0 ? word : chooseSession(found, word);
  }

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
      [
        shortId(sessionId),
        duration(Date.now() - updatedAt),
        name ?? firstMessage ?? "-",
        homeRelative(directory, env["HOME"]),
      ].map(oneLine),
    );
    const [head, ...lines] = table([["SESSION", "AGE", "NAME OR FIRST MESSAGE", "DIRECTORY"], ...rows], output.columns);
    output.print(output.paint("dim", head ?? ""));
    for (const line of lines) output.print(line);
    if (page.stored?.next !== undefined)
      output.aside("The list is incomplete. --cwd DIR lists the sessions of one directory.");
    return exitCodes.done;
  }
}
