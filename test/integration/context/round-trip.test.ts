import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exportContext } from "../../../context/document/export.ts";
import { Gate } from "../../../provider/gate.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, hold } from "../../../provider/reply.ts";
import type { TestsProvider } from "../../helpers/scripts.ts";
import { throughDocument } from "../../helpers/through-document.ts";
import type { Pi } from "../extension/driver.ts";
import { sharePi } from "../extension/shared-pi.ts";
import { type RecordedSession, recordingSettings, recordSession } from "./recorded-session.ts";

// Sessions that pi has written itself, exported and given to pi again: the service must see no difference.

const shared = sharePi();
const models = [{ id: "model-1", input: ["text", "image"] }];
const apis = {
  scripted: "openai-completions",
  "scripted-anthropic": "anthropic-messages",
  "scripted-responses": "openai-responses",
} as const;

/** Shapes that a recorded session must have for the comparison to be meaningful. */
const kinds = new Set([
  ...["model_change", "thinking_level_change", "system", "user", "assistant stop", "assistant toolUse", "toolResult"],
  ...["bashExecution", "assistant error", "context_edit", "assistant aborted", "custom_message", "session_info"],
  ...["compaction", "branch_summary"],
]);

test.each(Object.keys(apis) as (keyof typeof apis)[])(
  "exporting and importing any session of pi's leads to the same request (%s)",
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

test("during a run, an export has only complete items: no partial answer, and no result of a running tool", async () => {
  const options = { api: "scripted", models, settings: recordingSettings, after: ["shaping"] } as const;
  await using lent = await shared.use(options);
  const { pi, provider } = lent;
  const file = join(pi.directory, "sessions", "streaming.jsonl");
  const header = { type: "session", version: 3, id: "streaming", timestamp: new Date().toISOString(), cwd: pi.cwd };
  writeFileSync(file, `${JSON.stringify(header)}\n`);
  await pi.replaceSession(file);
  const exported = (): readonly string[] => {
    const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
    const { items = [] } = exportContext(lines.map((line) => JSON.parse(line) as unknown)).document;
    return items.map(
      ({ role, content }) => `${role} ${content.map((part) => ("text" in part ? part.text : "")).join()}`,
    );
  };
  const gate = new Gate();
  const { command, release } = pi.blockingCommand();
  provider.add(answer("I call ", hold(gate), "a tool.", call("bash", { command })), answer("Done."));
  await pi.rpc({ type: "prompt", message: "Go." });
  await gate.reached;
  expect(exported()).toEqual(["user Go."]);
  gate.open();
  await pi.event("tool_execution_start");
  const atWork = ["user Go.", "assistant I call a tool."];
  expect(exported()).toEqual([...atWork, "toolResult No result provided"]);
  await release();
  await pi.settled();
  expect(exported()).toEqual([...atWork, "toolResult released\n", "assistant Done."]);
});

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

/** What the service gets when a session continues. */
async function requestBehind(pi: Pi, provider: TestsProvider, entries: Entries): Promise<LogEntry | undefined> {
  const file = join(pi.directory, "sessions", `round-trip-${files++}.jsonl`);
  // Requests of some services contain the session's id.
  const header = { type: "session", version: 3, id: "round-trip", timestamp: new Date().toISOString(), cwd: pi.cwd };
  writeFileSync(file, [header, ...entries].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  await pi.replaceSession(file);
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled();
  const request = provider.requests.at(-1);
  expect(request?.violations).toEqual([]);
  expect(JSON.stringify(request?.body)).toContain("Go on.");
  return request;
}
