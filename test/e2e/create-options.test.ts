import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../client/index.ts";
import type { StartOptions } from "../../protocol/session-options.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, hold } from "../../provider/reply.ts";
import { capabilitiesOf } from "../../server/pi/capabilities.ts";
import { planSpawn } from "../../server/pi/spawn-options.ts";
import { parseVersion } from "../../server/pi/version.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { piUnderTest } from "../helpers/pi-versions.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

const extension = join(import.meta.dirname, "..", "fixtures", "extension", "session-commands.ts");

test("pi knows every flag that a session's options are translated to", () => {
  const help = execFileSync(process.execPath, [piUnderTest().cli, "--help"], { encoding: "utf8" });
  const path = "/x";
  const paths = [path];
  const { noMcp = false } = capabilitiesOf(parseVersion(piUnderTest().version) ?? [0, 0, 0]);
  const on = true;
  const plan = (approve: boolean, noTools: "all" | "builtin") =>
    planSpawn({
      program: { kind: "executable", path } as never,
      helper: path,
      helperConfig: path,
      childId: "child",
      cwd: path,
      options: {
        ...{ model: "m", thinking: "off", name: "n", tools: ["t"], excludeTools: ["t"], noTools, sessionDir: path },
        ...{ extensions: paths, skills: paths, promptTemplates: paths, approve },
        ...{ models: ["m"], noMcp },
        ...{ noExtensions: on, noSkills: on, noPromptTemplates: on, noContextFiles: on },
      },
      promptFiles: { systemPrompt: path, appendSystemPrompt: path },
      env: {},
    }).args;
  const flags = [...plan(true, "all"), ...plan(false, "builtin")].filter((word) => word.startsWith("--"));
  expect(new Set(flags).size).toBeGreaterThan(18);
  expect(flags.filter((flag) => !new RegExp(`^\\s+${flag}[ ,]`, "m").test(help))).toEqual([]);
});

/** Appends the value of its flag to the system prompt. */
const flagging = `export default function (pi) {
  pi.registerFlag("shout", { type: "string" });
  pi.on("before_agent_start", (event) => ({ systemPrompt: event.systemPrompt + "\\nflag " + pi.getFlag("shout") }));
}`;

/** Files that options name, in a directory of their own. */
function materialsIn({ root, agentDir: { path: agentDir } }: Stage) {
  const skill = join(root, "skills", "sing");
  const template = join(root, "templates", "greet.md");
  // A directory that pi searches for sessions; otherwise they cannot be opened again.
  const sessionDir = join(agentDir, "sessions", "chosen");
  for (const directory of [skill, dirname(template), sessionDir]) mkdirSync(directory, { recursive: true });
  writeFileSync(join(skill, "SKILL.md"), "---\nname: sing\ndescription: How to sing.\n---\nLoudly.\n");
  writeFileSync(template, "Greet $1.");
  const flagged = join(root, "flagged.ts");
  writeFileSync(flagged, flagging);
  return { skill, template, sessionDir, flagged };
}

async function heldTo(stage: Stage, sessionId: string): Promise<void> {
  const { commands } = await stage.client.call("session/getCommands", { sessionId });
  expect(commands.map(({ name }) => name)).toEqual(expect.arrayContaining(["test-reload", "greet", "skill:sing"]));
  await stage.client.session(sessionId).promptAndWait("go");
  const request = stage.provider.requests.at(-1);
  expect(request?.toolNames).toEqual(["read"]);
  expect(JSON.stringify(request?.body)).toContain("- behind all\\n--approve");
  expect(JSON.stringify(request?.body)).toContain("flag --approve @file");
  // `models` names one model only.
  expect(await stage.client.session(sessionId).command({ type: "cycle_model" })).toBeNull();
  const command = 'printf %s "$FROM_CLIENT $FROM_PROFILE"';
  expect(await stage.client.call("session/bash", { sessionId, command })).toMatchObject({ output: "mine profile's" });
}

test("a session and each later child have its creation options, also after closing and reopening", async () => {
  const config = JSON.stringify({
    profiles: { lean: { env: { FROM_PROFILE: "profile's" }, tools: ["read"], labels: { kind: "lean" } } },
    sessionEnv: ["FROM_*"],
  });
  await using stage = await startStage({ config });
  const { skill, template, sessionDir, flagged } = materialsIn(stage);
  const session = await stage.client.createSession({
    ...{ cwd: stage.cwd, profile: "lean", provider: "scripted", model: "model-1", name: "a name", sessionDir },
    ...{ extensions: [extension, flagged], skills: [skill], promptTemplates: [template], noExtensions: true },
    ...{ models: ["scripted/model-1"], flags: { shout: "--approve @file" } },
    ...{ appendSystemPrompt: "- behind all\n--approve", env: { FROM_CLIENT: "mine" }, labels: { team: "a" } },
  });
  expect(session.info).toMatchObject({
    ...{ profile: "lean", labels: { kind: "lean", team: "a" }, name: "a name", projectTrust: "not_approved" },
    model: { provider: "scripted", id: "model-1" },
  });
  expect(dirname(session.info?.file ?? "")).toBe(sessionDir);
  await heldTo(stage, session.id);

  await stage.restart();
  await heldTo(stage, session.id);
  expect(await stage.client.session(session.id).get()).toMatchObject({ generation: 2, labels: { team: "a" } });
  await stage.client.session(session.id).close();
  const opened = await stage.client.openSession({ sessionId: session.id });
  expect(opened.info).toMatchObject({
    ...{ profile: "lean", labels: { kind: "lean", team: "a" }, name: "a name", projectTrust: "not_approved" },
    model: { provider: "scripted", id: "model-1" },
  });
  await heldTo(stage, session.id);
  await opened.close();
  await stage.restart();
  // If the answer to a close is lost, the session must not be lost.
  const again = stage.client.session(session.id);
  await stage.client.openSession({ sessionId: session.id });
  const [, reopened] = await Promise.all([again.close(), stage.client.openSession({ sessionId: session.id })]);
  expect(reopened.info?.state).toBe("idle");
  await heldTo(stage, session.id);
  await again.close();
  // No file of the texts remains.
  expect(readdirSync(join(stage.stateDir, "run"))).toEqual([]);
});

test("session/open starts the pi of an idle session again with other options, if nobody else follows it", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [answer("Hello."), answer(hold(gate), "Held.")] } });
  const { client, cwd, provider } = stage;
  const { id: sessionId } = await client.createSession({ cwd, model: "scripted/model-1", tools: ["read"] });
  const open = (options: StartOptions) => client.call("session/open", { sessionId, options });
  const runs = client.session(sessionId);
  expect(await open({ tools: ["read"], model: "model-1", provider: "scripted" })).toMatchObject({ generation: 1 });
  expect(await open({ tools: ["grep", "ls"], name: "other" })).toMatchObject({ generation: 2, name: "other" });
  await runs.promptAndWait("Hi.");
  expect(provider.requests.at(-1)?.toolNames.toSorted()).toEqual(["grep", "ls"]);

  await expect(open({ skills: ["/missing"] })).rejects.toMatchObject({
    kind: "path_invalid",
    data: { reason: "missing" },
  });
  await expect(open({ tools: ["ls"], model: "no-such-model" })).rejects.toMatchObject({ kind: "model_not_found" });
  // The options that pi refused are not kept, and the session can be used.
  expect(await open({ tools: ["grep", "ls"] })).toMatchObject({ state: "idle" });

  const run = runs.promptAndWait("Hi.");
  await gate.reached;
  const busy = { kind: "session_busy", data: { reason: "running", options: ["tools"] } };
  await expect(open({ tools: ["ls"], name: "other" })).rejects.toMatchObject(busy);
  expect(await open({ tools: ["grep", "ls"] })).toMatchObject({ state: "running" });
  gate.open();
  await run;
  await using other = await connect({ stateDir: stage.stateDir });
  await other.call("session/subscribe", { sessionId });
  const shared = { kind: "session_busy", data: { reason: "shared", options: ["name"] } };
  await expect(open({ name: "mine" })).rejects.toMatchObject(shared);
});

test("options that pi refuses are not kept, also those that a session never had and one without a pi", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.promptAndWait("Hi.");
  const open = (options: StartOptions) => stage.client.call("session/open", { sessionId: session.id, options });
  await expect(open({ flags: { "no-such-flag": true } })).rejects.toMatchObject({ kind: "start_failed" });
  expect(await session.promptAndWait("Still there?")).toContain("Still there?");
  await fallAsleep(stage.client, session.id);
  await expect(open({ flags: { "no-such-flag": true } })).rejects.toMatchObject({ kind: "start_failed" });
  expect(await session.promptAndWait("And now?")).toContain("And now?");
});

test("each of two callers at once has started pi with its options", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.promptAndWait("Hi.");
  const open = (tools: string[]) => stage.client.call("session/open", { sessionId: session.id, options: { tools } });
  const opened = await Promise.all([open(["read"]), open(["ls"]), open(["ls"])]);
  expect(opened.map(({ generation }) => generation)).toEqual([2, 3, 3]);
  await session.promptAndWait("Hi.");
  expect(stage.provider.requests.at(-1)?.toolNames).toEqual(["ls"]);
});

test("an option that pi takes in another way starts the session once", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.promptAndWait("Hi.");
  const { generation } = await session.get();
  const open = (options: StartOptions) => stage.client.call("session/open", { sessionId: session.id, options });
  // The model does not reason, and a name has no space around it.
  const options: StartOptions = { thinking: "high", name: " padded " };
  for (let i = 0; i < 2; i += 1)
    expect(await open(options)).toMatchObject({ generation: generation + 1, thinkingLevel: "off", name: "padded" });
  expect(await open({ name: " " })).toMatchObject({ generation: generation + 1, name: "padded" });
  expect(await open({ thinking: "low" })).toMatchObject({ generation: generation + 2 });
});

test("a pi without the option refuses to be without MCP, and to load what is its own, and starts for no unknown flag", async () => {
  await using stage = await startStage();
  const { noMcp = false, builtinExtensions } = capabilitiesOf(parseVersion(piUnderTest().version) ?? [0, 0, 0]);
  expect((await stage.client.info()).pi.capabilities).toMatchObject({ noMcp, builtinExtensions });
  const created = stage.client.createSession({ cwd: stage.cwd, noMcp: true });
  if (noMcp) expect((await created).info?.state).toBe("idle");
  else await expect(created).rejects.toMatchObject({ kind: "unsupported_by_pi", data: { option: "noMcp" } });
  const own = stage.client.createSession({ cwd: stage.cwd, noExtensions: true, extensions: ["builtin:mcp"] });
  if (builtinExtensions === true) expect((await own).info?.state).toBe("idle");
  else await expect(own).rejects.toMatchObject({ kind: "unsupported_by_pi", data: { option: "extensions" } });
  const unknown = stage.client.createSession({ cwd: stage.cwd, flags: { "no-such-flag": true } });
  await expect(unknown).rejects.toMatchObject({ kind: "start_failed" });
  expect(await stage.client.listSessions()).toHaveLength(noMcp ? 2 : 0);
});

test("an ephemeral session leaves no file, has its id in pi too, and is lost with its daemon", async () => {
  await using stage = await startStage();
  const own = { sessionId: "my-own-id", ephemeral: true };
  const session = await stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", ...own });
  expect(await session.promptAndWait("hello")).toContain("hello");
  expect(session.info).toMatchObject({ ephemeral: "living", file: "" });
  const state = await stage.client.call("session/getState", { sessionId: session.id });
  expect(state).toMatchObject({ sessionId: "my-own-id" });
  expect(state.sessionFile).toBeUndefined();
  for (const method of ["session/clone", "session/reload"] as const) {
    const refused = stage.client.call(method, { sessionId: session.id });
    await expect(refused).rejects.toMatchObject({ kind: "session_file_unusable", data: { reason: "ephemeral" } });
  }
  await stage.restart();
  const after = stage.client.session(session.id);
  expect(await after.get()).toMatchObject({ ephemeral: "lost", lostPrompts: [] });
  await expect(after.prompt("again")).rejects.toMatchObject({ kind: "session_lost" });
  await expect(after.push({ customType: "t", content: "c" }).accepted).rejects.toMatchObject({ kind: "session_lost" });
  await after.close();
});
