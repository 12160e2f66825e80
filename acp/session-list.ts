import type { SessionInfo } from "@agentclientprotocol/sdk";
import { AcpError } from "./acp-error.ts";
import type { Port } from "./port.ts";
import type { Params } from "./rpc-peer.ts";
import { oneLine } from "./updates/text.ts";

const pageSize = 100;
const maxTitleChars = 100;

/** Lists the sessions in pages: first those of the daemon, then those that only pi has stored. */
export async function listSessions(port: Port, { cwd, cursor }: Params): Promise<object> {
  const { list, after } = placeIn(cursor);
  const isOwn = list === "own";
  const { sessions, next, stored } = await port.call("session/list", {
    ...(typeof cwd === "string" ? { cwd } : {}),
    stored: true,
    storedLimit: pageSize,
    limit: isOwn ? pageSize : 1,
    ...(after === undefined ? {} : { [isOwn ? "after" : "storedAfter"]: after }),
  });
  const own = isOwn ? sessions : [];
  const listedOwn = own.map(listed);
  if (isOwn && next !== undefined) return { sessions: listedOwn, nextCursor: `own ${next}` };
  return {
    sessions: [...listedOwn, ...(stored?.sessions ?? []).map(listed)],
    ...(stored?.next === undefined ? {} : { nextCursor: `stored ${stored.next}` }),
  };
}

function placeIn(cursor: unknown): { readonly list: "own" | "stored"; readonly after?: string } {
  if (cursor === undefined || cursor === null) return { list: "own" };
  const [, list, after] = /^(own|stored)(?: (.+))?$/s.exec(String(cursor)) ?? [];
  if (list !== "own" && list !== "stored") throw new AcpError("invalidParams", "The cursor is none of this agent's.");
  return { list, ...(after === undefined ? {} : { after }) };
}

interface Stored {
  readonly sessionId: string;
  readonly cwd: string;
  readonly updatedAt: number;
  readonly name?: string;
  readonly firstMessage?: string;
}

function listed({ sessionId, cwd, updatedAt, name, firstMessage = "" }: Stored): SessionInfo {
  const title = oneLine(name ?? firstMessage, maxTitleChars);
  return { sessionId, cwd, updatedAt: new Date(updatedAt).toISOString(), ...(title === "" ? {} : { title }) };
}
