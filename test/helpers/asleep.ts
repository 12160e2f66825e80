import { expect } from "vitest";
import type { Client } from "../../client/index.ts";
import type { WireError } from "../../protocol/errors.ts";

/** Makes a settled session hibernate. The daemon may still be asking its pi something: then it is busy. */
export async function fallAsleep(client: Client, sessionId: string): Promise<void> {
  const hibernated = (): Promise<string> =>
    client.call("session/hibernate", { sessionId }).then(
      ({ state }) => state,
      (error: WireError) => {
        if (error.kind !== "session_busy") throw error;
        return `busy: ${JSON.stringify(error.data)}`;
      },
    );
  await expect.poll(hibernated).toBe("hibernated");
}
