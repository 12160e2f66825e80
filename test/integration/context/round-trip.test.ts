import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ContextTarget } from "../../../protocol/context/document.ts";
import { exportContext } from "../../../protocol/context/export.ts";
import { finishContext } from "../../../protocol/context/finish.ts";
import { sessionEntries } from "../../../protocol/context/session-entries.ts";
import type { JsonObject } from "../../../provider/json.ts";
import type { TestsProvider } from "../../helpers/scripts.ts";
import type { Pi } from "../extension/driver.ts";
import { sharePi } from "../extension/shared-pi.ts";
import { type RecordedSession, recordingSettings, recordSession } from "./recorded-session.ts";

// Sessions that pi has written itself, exported and given to pi again: the service must see no difference.

const shared = sharePi();
const models = [{ id: "model-1", input: ["text", "image"] }];
const apis = { scripted: "openai-completions", "scripted-anthropic": "anthropic-messages" } as const;

test.each(Object.keys(apis) as (keyof typeof apis)[])(
  "a session of pi's that was exported and imported is the same request, whatever was in it (%s)",
  async (api) => {
    await using lent = await shared.use({ api, models, settings: recordingSettings, after: ["shaping"] });
    const { pi, provider } = lent;
    const recorded = await recordSession(pi, provider);
    const target = { api: apis[api], provider: api, id: "model-1", takesImages: true };

    for (const [name, leafId] of Object.entries(recorded.leaves)) {
      const native = await requestBehind(pi, provider, nativeFile(recorded, leafId));
      const imported = await requestBehind(pi, provider, importedFile(recorded, leafId, target, pi.cwd));
      expect(imported, name).toEqual(native);
    }
  },
);

/** The branch as pi itself would continue it. */
function nativeFile({ entries }: RecordedSession, leafId: string): Entries {
  const byId = new Map(entries.map((entry) => [entry["id"], entry]));
  const path: Readonly<Record<string, unknown>>[] = [];
  for (let entry = byId.get(leafId); entry !== undefined; entry = byId.get(entry["parentId"])) path.unshift(entry);
  return path;
}

function importedFile({ entries }: RecordedSession, leafId: string, target: ContextTarget, cwd: string): Entries {
  const { items = [] } = exportContext(entries, { leafId, includeReasoning: true }).document;
  const repaired = { items, nodes: items.length, repairs: { listed: [], counts: {} } };
  const prepared = finishContext(repaired, { budget: null }, target);
  return [...sessionEntries(prepared, { id: "s", timestamp: Date.now(), cwd })].slice(1);
}

type Entries = readonly Readonly<Record<string, unknown>>[];
let files = 0;

/** What the service is sent when a session is gone on with. */
async function requestBehind(pi: Pi, provider: TestsProvider, entries: Entries): Promise<JsonObject | undefined> {
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
  return request?.body;
}
