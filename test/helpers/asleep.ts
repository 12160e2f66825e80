import { expect } from "vitest";
import type { Client } from "../../client/index.ts";
import type { WireError } from "../../protocol/errors.ts";

/** Has a session hibernate that has settled: the daemon may be asking its pi something of its own yet. */
export async function fallAsleep(client: Client, sessionId: string): Promise<void> {
  const hibernated = (): Promise<string> =>
    client.call("session/hibernate", { sessionId }).then(
      ({ state }) => state,
      ({ kind }: WireError) => kind,
    );
  await expect.poll(hibernated).toBe("hibernated");
}
