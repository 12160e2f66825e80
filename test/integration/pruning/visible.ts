import type { LogEntry } from "../../../provider/log.ts";
import type { Pi } from "../extension/driver.ts";

const tag = /<dcp-message-id>([mb]\d+)<\/dcp-message-id>/gu;

/** What each id names in a request: the texts of its message up to the tag. */
export function named(request: LogEntry | undefined): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { role, texts, toolResults } of request?.messages ?? []) {
    if (role === "system") continue;
    for (const text of [...toolResults.map((result) => result.text), texts.join("\n")]) {
      let from = 0;
      for (const { 0: whole, 1: id = "", index } of text.matchAll(tag)) {
        if (found[id] !== undefined) throw new Error(`${id} is there twice.`);
        found[id] = text.slice(from, index).trim();
        from = index + whole.length;
      }
    }
  }
  return found;
}

/** A run of one prompt. */
export async function prompt(pi: Pi, message: string): Promise<void> {
  pi.log.forget("hello");
  await pi.rpc({ type: "prompt", message });
  await pi.settled();
}

/** The reports to subscribers of why pruning is degraded. */
export function degradedOf(pi: Pi): readonly string[] {
  return pi
    .frames("notice")
    .flatMap((notice) => (notice.name === "pruning/degraded" ? [`${notice.data.reason}: ${notice.data.message}`] : []));
}
