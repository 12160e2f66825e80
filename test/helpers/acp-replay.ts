import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { messageOf, type PiEntry } from "../../acp/updates/branch.ts";
import { firstWords } from "../../acp/updates/messages.ts";
import { Replay, type ReplayOptions } from "../../acp/updates/replay.ts";

/** What pi has in memory. */
export interface Entries {
  readonly entries: readonly PiEntry[];
  readonly leafId: string | null;
}

export interface ReplayedOptions extends Omit<ReplayOptions, "title" | "newest" | "lastTurn" | "isRunning"> {
  readonly isRunning?: boolean;
}

/** The entries from the root to the leaf. */
function branchTo({ entries, leafId }: Entries): readonly PiEntry[] {
  const byId = new Map(entries.map((entry) => [entry["id"], entry]));
  const path: PiEntry[] = [];
  for (let entry = byId.get(leafId); entry !== undefined; entry = byId.get(entry["parentId"])) {
    path.unshift(entry);
    byId.delete(entry["id"]);
  }
  return path;
}

/** Tells the active branch of some entries. */
export function replay(given: Entries, options: ReplayedOptions): { updates: SessionUpdate[]; replay: Replay } {
  const { isRunning = false, ...shown } = options;
  const branch = branchTo(given);
  const messages = branch.map(messageOf).filter((message) => message !== undefined);
  const name = branch.findLast(({ type }) => type === "session_info")?.["name"];
  const first = messages.find(({ role }) => role === "user");
  const told = new Replay({
    ...shown,
    title: typeof name === "string" ? name : first && firstWords(first),
    newest: branch.at(-1),
    lastTurn: messages.findLast(({ role }) => role === "user" || role === "assistant"),
    isRunning,
  });
  const updates = [...told.begin(), ...branch.flatMap((entry) => [...told.entry(entry)]), ...told.end()];
  return { updates, replay: told };
}
