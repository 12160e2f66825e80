import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import { defaultPruning } from "../../../protocol/pruning/config.ts";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { fallAsleep } from "../../helpers/asleep.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const create = (more: object) => stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", ...more });
const inspect = ({ id: sessionId }: SessionHandle) => stage.client.call("pruning/inspect", { sessionId });
const configure = ({ id: sessionId }: SessionHandle, more: { pruning?: PruningOptions; reload?: boolean }) =>
  stage.client.call("pruning/configure", { sessionId, ...more });
const isTagged = (request: LogEntry | undefined) => request?.countText("<dcp-message-id>m001</dcp-message-id>") === 1;

async function requestOf(session: SessionHandle, text: string): Promise<LogEntry | undefined> {
  await session.runUntilSettled(text);
  return stage.provider.requests.at(-1);
}

test("a session with a list of tools also has compress and recall; with pruning excluded, off or delegated it has no trace of them (R002-29)", async () => {
  const bare = await requestOf(await create({ tools: ["read"] }), "Hello.");
  expect(bare?.toolNames).toEqual(["read"]);

  const on = await requestOf(await create({ tools: ["read"], pruning: { enabled: true } }), "Hello.");
  expect(on?.toolNames.toSorted()).toEqual(["compress", "read", "recall"]);
  expect(isTagged(on)).toBe(true);

  const without = await create({ tools: ["read"], excludeTools: ["compress", "recall"], pruning: { enabled: true } });
  expect((await requestOf(without, "Hello."))?.body).toEqual(bare?.body);
  expect(await inspect(without)).toMatchObject({ off: expect.stringContaining("compress") });

  const child = await create({ tools: ["read"], delegatedBy: without.id, pruning: { enabled: true } });
  expect((await requestOf(child, "Hello."))?.body).toEqual(bare?.body);
  await expect(inspect(child)).rejects.toMatchObject({ kind: "pruning_disabled" });
});

test("a session is configured while running and while hibernated, and its texts and its project's file are read again (R002-26)", async () => {
  const dir = join(stage.root, "prompts");
  mkdirSync(dir);
  writeFileSync(join(dir, "system.md"), "Compress like a monk.");
  mkdirSync(join(stage.cwd, ".pi"));
  const project = join(stage.cwd, ".pi", "pi-rpcd.jsonc");
  writeFileSync(project, '{"pruning": {"nudgeFrequency": 7}}');
  const session = await create({ approve: true });
  expect(isTagged(await requestOf(session, "Hello."))).toBe(false);

  const { from, configuration } = await configure(session, { pruning: { enabled: true, prompts: { dir } } });
  expect(from).toBe("nextRequest");
  expect(configuration).toEqual({ ...defaultPruning, enabled: true, nudgeFrequency: 7, prompts: { dir } });
  const on = await requestOf(session, "Again.");
  expect([isTagged(on), on?.countText("Compress like a monk.")]).toEqual([true, 1]);
  expect(await inspect(session)).toMatchObject({ configuration, mode: "automatic", blocks: [] });

  writeFileSync(join(dir, "system.md"), "Compress like a nun.");
  writeFileSync(project, '{"pruning": {"nudgeFrequency": 8}}');
  const text = readFileSync(project, "utf8");
  expect((await configure(session, { reload: true })).configuration.nudgeFrequency).toBe(8);
  expect((await requestOf(session, "And again."))?.countText("Compress like a nun.")).toBe(1);
  // R002-26: files of users stay unchanged.
  expect(readFileSync(project, "utf8")).toBe(text);

  await fallAsleep(stage.client, session.id);
  expect((await configure(session, { pruning: { enabled: false } })).from).toBe("nextPi");
  await expect(inspect(session)).rejects.toMatchObject({ kind: "pruning_disabled" });
  expect((await session.get()).state).toBe("hibernated");
  await stage.restart();
  const off = await requestOf(stage.client.session(session.id), "Still there?");
  expect([isTagged(off), off?.toolNames.includes("compress")]).toEqual([false, false]);
});

test("mistakes are reported over the wire by their keys, before a pi is started", async () => {
  const { url, token } = stage.daemon.file;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const post = async (params: object) => {
    const body = JSON.stringify({ cwd: stage.cwd, ...params });
    const answer = await fetch(new URL("/v1/sessions", url.replace(/^ws/, "http")), { method: "POST", headers, body });
    return [answer.status, ((await answer.json()) as { detail: string }).detail];
  };
  expect(await post({ pruning: { maxContext: 80, maxContex: 1 } })).toEqual([
    400,
    'pruning.maxContext: 80 is ambiguous; write 0.8, "80%" or at least 1000 tokens. pruning.maxContex: unknown key; the nearest is maxContext.',
  ]);
  expect(await post({ pruning: { enabled: true, minContext: 0.5, maxContext: "40%" } })).toEqual([
    400,
    "pruning.minContext: 0.5 is not below pruning.maxContext, which is 0.4.",
  ]);
});
