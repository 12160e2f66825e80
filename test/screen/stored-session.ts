import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PiSession } from "../helpers/pi-session.ts";
import type { Stage } from "../helpers/stage.ts";

/** Writes a session to pi's folder and opens it. Returns its id. */
export async function openStored({ client, agentDir, cwd }: Stage, stored: PiSession): Promise<string> {
  const id = "0193d3a1-0000-7000-8000-000000000001";
  const folder = join(agentDir.path, "sessions", "--stored--");
  const file = join(folder, `2026-01-01T00-00-00-000Z_${id}.jsonl`);
  mkdirSync(folder, { recursive: true });
  const [header, ...entries] = stored.entries;
  const lines = [{ ...header, id, cwd }, ...entries].map((line) => JSON.stringify(line));
  writeFileSync(file, `${lines.join("\n")}\n`);
  await client.openSession({ file });
  return id;
}
