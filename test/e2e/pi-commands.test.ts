import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { httpCall } from "../../client/index.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import { isMethodName } from "../../protocol/methods.ts";
import { type PiCommandRoute, piCommands } from "../../protocol/pi-commands.ts";
import { piUnderTest } from "../helpers/pi-versions.ts";
import { type Stage, startStage } from "../helpers/stage.ts";
import { watch } from "../helpers/watcher.ts";

/** The commands in pi's own documents. */
function documentedCommands(): string[] {
  const path = join(dirname(piUnderTest().cli), "..", "..", "docs", "rpc-commands.md");
  const [reference = ""] = readFileSync(path, "utf8").split("\n## Model object");
  return [...reference.matchAll(/^### ([a-z_]+)$/gm)].map(([, name = ""]) => name);
}

describe("the table of pi's commands", () => {
  test("has every command of pi's documents, each with an existing method", () => {
    const documented = documentedCommands();
    expect(documented.length).toBeGreaterThan(20);
    expect(documented.filter((name) => !Object.hasOwn(piCommands, name))).toEqual([]);
    const methods = Object.values<PiCommandRoute>(piCommands).flatMap(({ method }) => method ?? []);
    expect(methods.filter((method) => !isMethodName(method))).toEqual([]);
  });
});

describe("pi's commands by their methods", () => {
  test("answer as pi does, and leave the user's shared settings alone, except the four that say so", async () => {
    await using stage = await startStage();
    const settingsFile = join(stage.agentDir.path, "settings.json");
    const settings = (): string => readFileSync(settingsFile, "utf8");
    const session = await stage.session();
    const sessionId = session.id;
    const call = <M extends MethodName>(method: M, params: Omit<Params<M>, "sessionId">): Promise<Result<M>> =>
      stage.client.call(method, { ...params, sessionId } as Params<M>);
    const before = settings();
    expect(await call("session/getLastText", {})).toEqual({ text: null });
    await session.promptAndWait("hello");

    const state = await call("session/getState", {});
    expect(state).toMatchObject({ model: { id: "model-1" }, isStreaming: false, sessionId });
    const { messages } = await call("session/getMessages", {});
    expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant"]);
    const { entries, leafId } = await call("session/getEntries", {});
    expect(leafId).toBe(entries.at(-1)?.id);
    expect((await call("session/getEntries", { since: entries.at(-2)?.id ?? "" })).entries).toEqual(entries.slice(-1));
    await expect(call("session/getEntries", { since: "nothing" })).rejects.toMatchObject({ kind: "refused_by_pi" });
    expect((await call("session/getTree", {})).tree[0]?.entry.id).toBe(entries[0]?.id);
    expect((await call("session/getForkMessages", {})).messages).toMatchObject([{ text: "hello" }]);
    expect((await call("session/getLastText", {})).text).toContain("hello");
    expect(await call("session/getStats", {})).toMatchObject({ userMessages: 1, assistantMessages: 1 });
    const { commands } = await call("session/getCommands", {});
    expect(commands.filter(({ name }) => /rpcd/.test(name))).toEqual([]);
    expect((await call("session/getThinkingLevels", {})).levels).toEqual(["off"]);

    expect(await call("session/setModel", { provider: "scripted", modelId: "model-2" })).toMatchObject({
      id: "model-2",
    });
    expect(await session.get()).toMatchObject({ model: { provider: "scripted", id: "model-2" } });
    await expect(call("session/setModel", { provider: "scripted", modelId: "none" })).rejects.toMatchObject({
      kind: "model_not_found",
    });
    const cycled = await call("session/cycleModel", {});
    expect(cycled.changed).toBe(true);
    expect(await session.get()).toMatchObject({ model: { id: cycled.model?.id, provider: cycled.model?.provider } });
    expect(await call("session/setThinkingLevel", { level: "high" })).toEqual({ level: "off" });
    expect(await call("session/cycleThinkingLevel", {})).toEqual({ changed: false });
    for (const [name, shown] of [
      [" näme 名前\u2028\u202ex😀\u00a0 ", "näme 名前\u2028\u202ex😀"],
      ["a name", "a name"],
    ] as const) {
      expect(await call("session/rename", { name })).toEqual({});
      expect((await session.get()).name).toBe(shown);
      expect((await call("session/getState", {})).sessionName).toBe(shown);
    }
    for (const name of ["a\u0085b", "a\u009b31m", "a\u007fb", "a\nb", "a\ud800", "-a", ""]) {
      const refused = { kind: "invalid_params" };
      const { stateDir, cwd } = stage;
      await expect(httpCall("session/rename", { sessionId, name }, { stateDir })).rejects.toMatchObject(refused);
      await expect(httpCall("session/create", { cwd, name }, { stateDir })).rejects.toMatchObject(refused);
      const command = { type: "set_session_name", name };
      await expect(httpCall("session/command", { sessionId, command }, { stateDir })).rejects.toMatchObject(refused);
    }
    expect(await call("session/abortRetry", {})).toEqual({});
    expect((await call("session/export", {})).html).toMatch(/<html.*<\/html>/is);
    await expect(call("session/compact", {})).rejects.toMatchObject({ kind: "refused_by_pi" });
    await shellCommands(stage, sessionId);
    await modelLists(stage, sessionId);
    expect(settings()).toBe(before);

    const shared = [
      ["session/setSteeringMode", { mode: "all" }, "steeringMode", "all"],
      ["session/setFollowUpMode", { mode: "all" }, "followUpMode", "all"],
      ["session/setAutoCompaction", { enabled: false }, "compaction.enabled", false],
      ["session/setAutoRetry", { enabled: false }, "retry.enabled", false],
    ] as const;
    for (const [method, params] of shared) {
      await expect(call(method, params as never)).rejects.toMatchObject({ kind: "forbidden" });
    }
    expect(settings()).toBe(before);
    for (const [method, params, setting, value] of shared) {
      const changed = await call(method, { ...params, confirmShared: true } as never);
      expect(changed).toEqual({ setting, value, file: settingsFile });
      const [name = "", inner] = setting.split(".");
      const written = JSON.parse(settings())[name];
      expect(inner === undefined ? written : written[inner]).toBe(value);
    }
  });
});

/** They stream, end with their exit code, and are ended by the caller that started them. */
async function shellCommands({ client, daemon }: Stage, sessionId: string): Promise<void> {
  await using watcher = await watch(daemon.file, sessionId);
  const output = async (id: string): Promise<unknown> =>
    (await watcher.until(({ params }) => params.event?.type === "bash_execution_update" && params.event.id === id))
      .params.event;
  const ended = await client.call("session/bash", { sessionId, command: "echo out; exit 3", bashId: "one" });
  expect(ended).toEqual({ bashId: "one", output: "out\n", exitCode: 3, cancelled: false, truncated: false });
  expect(await output("bash:one")).toMatchObject({ delta: "out\n" });

  const abandon = new AbortController();
  const command = "echo begun; sleep 1000";
  const sleeping = client.call("session/bash", { sessionId, command, bashId: "two" }, { signal: abandon.signal });
  const waiting = client.call("session/bash", { sessionId, command: "echo next", bashId: "three" });
  await output("bash:two");
  abandon.abort(new Error("enough"));
  await expect(sleeping).rejects.toThrow("enough");
  expect(await waiting).toMatchObject({ output: "next\n", exitCode: 0 });

  const third = client.call("session/bash", { sessionId, command, bashId: "four", excludeFromContext: true });
  await output("bash:four");
  await client.call("session/abortBash", { sessionId });
  expect(await third).toMatchObject({ cancelled: true });
}

/** The same from a session's pi and from one started for the question; answers are cached until pi's files change. */
async function modelLists({ client, agentDir }: Stage, sessionId: string): Promise<void> {
  const first = await client.call("model/list", {});
  expect(first.models.map(({ provider, id }) => `${provider}/${id}`).toSorted()).toEqual(agentDir.models.toSorted());
  expect(first.providers).toContainEqual({ id: "scripted", models: 2, login: "other" });
  expect(JSON.stringify(first)).not.toContain("apiKey");
  expect((await client.call("model/list", { sessionId })).models).toEqual(first.models);
  expect(await client.call("model/list", {})).toEqual(first);
  const login = { scripted: { type: "api_key", key: "secret" }, elsewhere: { type: "oauth", refresh: "secret" } };
  writeFileSync(join(agentDir.path, "auth.json"), JSON.stringify(login), { mode: 0o600 });
  const second = await client.call("model/list", {});
  expect(second.providers).toContainEqual({ id: "scripted", models: 2, login: "api_key" });
  expect(second.providers).toContainEqual({ id: "elsewhere", models: 0, login: "oauth" });
  expect(JSON.stringify(second)).not.toContain("secret");
}
