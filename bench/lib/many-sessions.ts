import { setTimeout as sleep } from "node:timers/promises";
import type { RawClient } from "./raw-client.ts";

/** The daemon takes 200 creates of a client in 10 s. */
const allowedMs = 52;

/** Creates this many sessions, one each `everyMs`. Default: at the rate that the daemon allows. */
export async function createSessions(
  client: RawClient,
  count: number,
  cwd: string,
  everyMs = allowedMs,
): Promise<readonly string[]> {
  const sessions: string[] = [];
  while (sessions.length < count) {
    const rested = sleep(everyMs);
    sessions.push((await client.request("session/create", { cwd })).sessionId);
    await rested;
  }
  return sessions;
}
