import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "../../protocol/objects.ts";
import { agentDirectoryOf } from "./session-file.ts";

/** The kind of credentials that pi has stored for each provider, never the credentials themselves. */
export async function storedLogins(env: NodeJS.ProcessEnv): Promise<ReadonlyMap<string, "oauth" | "api_key">> {
  const text = await readFile(join(agentDirectoryOf(env), "auth.json"), "utf8").catch(() => "{}");
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    // pi reports its errors; without it there are no stored logins.
  }
  const entries = Object.entries(isRecord(stored) ? stored : {});
  return new Map(
    entries.flatMap(([provider, login]) => {
      const type = isRecord(login) ? login["type"] : undefined;
      return type === "oauth" || type === "api_key" ? [[provider, type] as const] : [];
    }),
  );
}
