import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LogEntry } from "../../../provider/log.ts";
import type { TestsProvider } from "../../helpers/scripts.ts";
import { throughDocument } from "../../helpers/through-document.ts";
import type { Pi } from "../extension/driver.ts";
import { sharePi } from "../extension/shared-pi.ts";
import { type RecordedSession, recordingSettings, recordSession } from "./recorded-session.ts";

// Sessions that pi has written itself, exported and given to pi again: the service must see no difference.

const shared = sharePi();
const models = [{ id: "model-1", input: ["text", "image"] }];
const apis = { scripted: "openai-completions", "scripted-anthropic": "anthropic-messages" } as const;

/** What a recorded session must have, for the comparison to say something. */
const kinds = new Set([
  ...["model_change", "thinking_level_change", "system", "user", "assistant stop", "assistant toolUse", "toolResult"],
  ...["bashExecution", "assistant error", "context_edit", "assistant aborted", "custom_message", "session_info"],
  ...["compaction", "branch_summary"],
]);

test.each(Object.keys(apis) as (keyof typeof apis)[])(
  "a session of pi's that was exported and imported is the same request, whatever was in it (%s)",
  async (api) => {
    await using lent = await shared.use({ api, models, settings: recordingSettings, after: ["shaping"] });
    const { pi, provider } = lent;
    const recorded = await recordSession(pi, provider);
    expect(new Set(recorded.entries.map(kindOf))).toEqual(kinds);
    const target = { api: apis[api], provider: api, id: "model-1", takesImages: true };

    for (const [name, leafId] of Object.entries(recorded.leaves)) {
      const native = await requestBehind(pi, provider, branchOf(recorded, leafId));
      const imported = await requestBehind(pi, provider, throughDocument(recorded.entries, target, { leafId }).entries);
      expect(imported?.body, name).toEqual(native?.body);
      expect(imported?.bodySha256, name).toBe(native?.bodySha256);
    }
  },
);

type Entries = RecordedSession["entries"];

function kindOf({ type, message }: Entries[number]): string {
  if (type !== "message") return String(type);
  const { role, stopReason } = message as { role: string; stopReason?: string };
  return stopReason === undefined ? role : `${role} ${stopReason}`;
}

/** The branch as pi itself would continue it. */
function branchOf({ entries }: RecordedSession, leafId: string): Entries {
  const byId = new Map(entries.map((entry) => [entry["id"], entry]));
  const path: Entries[number][] = [];
  for (let entry = byId.get(leafId); entry !== undefined; entry = byId.get(entry["parentId"])) path.unshift(entry);
  return path;
}

let files = 0;

/** What the service is sent when a session is gone on with. */
async function requestBehind(pi: Pi, provider: TestsProvider, entries: Entries): Promise<LogEntry | undefined> {
  const id = `round-trip-${files++}`;
  const file = join(pi.directory, "sessions", `${id}.jsonl`);
  const header = { type: "session", version: 3, id, timestamp: new Date().toISOString(), cwd: pi.cwd };
  writeFileSync(file, [header, ...entries].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  await pi.replaceSession(file);
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled();
  const request = provider.requests.at(-1);
  expect(request?.violations).toEqual([]);
  expect(JSON.stringify(request?.body)).toContain("Go on.");
  return request;
}
