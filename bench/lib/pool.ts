import { setTimeout as sleep } from "node:timers/promises";
import { within } from "./deadline.ts";
import type { RawClient } from "./raw-client.ts";

/** Resolves when the daemon has a warm child, so that none starts meanwhile. */
export async function poolIsFull(client: RawClient): Promise<void> {
  const isFull = async (): Promise<void> => {
    while (Number((await client.request("daemon/info", {})).warmChildren) === 0) await sleep(20);
  };
  await within(30, "a warm child", isFull());
}
