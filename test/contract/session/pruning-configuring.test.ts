import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import { partsOf, spawnOptions } from "../../../server/context/parts-config.ts";
import { pruningHandlers } from "../../../server/rpc/handlers/pruning.ts";
import { requirePart } from "../../../server/rpc/policies.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, type Heard, recorder, startCore } from "../../helpers/core.ts";
import { rows, under } from "../../helpers/policies.ts";

const never = new AbortController().signal;
const configure = (session: Session, pruning: PruningOptions, reload = false) =>
  session.parts.configuring.prune(pruning, reload, never);
/** The configuration that the helper received. */
const told = (heard: readonly Heard[]) =>
  heard.flatMap(({ params }) =>
    params.event?.type === "frame_came" && params.event.kind === "configure" ? [params.event.parts] : [],
  );

function writeProject({ cwd }: Core, text: string): string {
  const file = join(cwd, ".pi", "pi-rpcd.jsonc");
  mkdirSync(join(cwd, ".pi"), { recursive: true });
  writeFileSync(file, text);
  return file;
}

test("pruning options are layered: daemon, project, profile, call, pruning/configure; a hibernated session stays hibernated", async () => {
  await using core = await startCore({
    pruning: { nudgeFrequency: 2, nudgeForce: "strong", compress: { protectedTools: ["a", "b"] } },
    profiles: { mine: { pruning: { enabled: true, iterationNudgeThreshold: 3, nudgeForce: "soft" } } },
  });
  writeProject(core, '{"pruning": {"nudgeFrequency": 3, "debug": true, "compress": {"protectedTools": ["c"]}}}');
  const pruning = { iterationNudgeThreshold: 4, tagAssistant: true };
  const session = await core.registry.create({ cwd: core.cwd, approve: true, profile: "mine", pruning }, "s");
  await session.supervisor.hibernate(false);
  const { generation } = session.info();
  const { configuration, from } = await configure(session, { tagAssistant: false, protectRecentTurns: 7 });
  expect(from).toBe("nextPi");
  expect(configuration).toMatchObject({
    enabled: true,
    debug: true,
    nudgeFrequency: 3,
    nudgeForce: "soft",
    iterationNudgeThreshold: 4,
    tagAssistant: false,
    protectRecentTurns: 7,
    compress: { permission: "allow", protectedTools: ["c"] },
  });
  expect(session.info()).toMatchObject({ state: "hibernated", generation });
  await core.kill();
  const { options } = core.registry.get("s").stored;
  expect(options.pruning).toMatchObject({ protectRecentTurns: 7, iterationNudgeThreshold: 4, debug: true });
});

test("layers are read again on demand: the project's current file applies below the callers' options", async () => {
  await using core = await startCore({ pruning: { nudgeFrequency: 2 } });
  core.behave("tell-frames");
  writeProject(core, '{"pruning": {"enabled": true, "protectRecentTurns": 5, "tagAssistant": true}}');
  const optimisation = { masking: { afterTurns: 3 } };
  const pruning = { nudgeDebounceTurns: 9 };
  const session = await core.registry.create({ cwd: core.cwd, approve: true, pruning, optimisation });
  await configure(session, { notification: "off" });
  const heard = recorder();
  session.subscribe(heard);
  const file = writeProject(
    core,
    '{"pruning": {"enabled": true, "protectRecentTurns": 6}, "optimisation": {"cost": {}}}',
  );
  const now = await configure(session, {}, true);
  expect(now.from).toBe("nextRequest");
  expect(now.configuration).toMatchObject({
    ...{ enabled: true, nudgeFrequency: 2, protectRecentTurns: 6, tagAssistant: false },
    ...{ nudgeDebounceTurns: 9, notification: "off" },
  });
  expect(session.stored.options.optimisation).toEqual(optimisation);
  // Also when nothing changed, because files that it names may have changed.
  await configure(session, {}, true);
  await heard.until(() => told(heard.heard).length === 2);
  writeProject(core, '{"pruning": {\n"maxContext": 80}}');
  const without = await configure(session, {}, true);
  expect(without.configuration).toMatchObject({ enabled: false, nudgeDebounceTurns: 9, notification: "off" });
  const { params } = await heard.until(({ method }) => method === "optimisation/degraded");
  expect(params.reason).toBe(
    `${file} has mistakes: line 2: pruning.maxContext: 80 is ambiguous; write 0.8, "80%" or at least 1000 tokens.`,
  );
});

test("a pi gets the options of enabled pruning and none when it is off; with a list of tools it also gets compress and recall", async () => {
  await using core = await startCore();
  core.behave("tell-frames");
  const session = await core.registry.create({ cwd: core.cwd });
  const heard = recorder();
  session.subscribe(heard);
  await configure(session, { maxContext: 0.7 });
  expect(told(heard.heard)).toEqual([]);
  expect((await configure(session, { enabled: true })).from).toBe("nextRequest");
  await configure(session, { enabled: false });
  await heard.until(() => told(heard.heard).length === 2);
  expect(told(heard.heard)[0].pruning).toMatchObject({ enabled: true, maxContext: 0.7 });
  expect(told(heard.heard)[1]).toBeNull();

  const listed = await core.registry.create({ cwd: core.cwd, tools: ["read"] });
  expect((await configure(listed, { enabled: true })).from).toBe("nextPi");
  const { tools } = spawnOptions(listed.stored.options, partsOf(listed.stored, "/spill"));
  expect(tools).toEqual(["read", "recall", "compress"]);
});

test("a delegated session is not pruned unless its configuration enables it", async () => {
  await using core = await startCore();
  const pruning = { enabled: true };
  const session = await core.registry.create({ cwd: core.cwd, pruning, delegatedBy: "parent" }, "child");
  expect(partsOf(session.stored, "/spill")).toBeUndefined();
  const handler = pruningHandlers(core.registry)["pruning/inspect"];
  const policed = under(requirePart(core.registry), "pruning/inspect", handler);
  const inspect = async () => await policed({ sessionId: "child" }, { signal: never });
  await expect(inspect()).rejects.toMatchObject({ kind: "pruning_disabled", data: { reason: "child_session" } });
  await configure(session, { childSessions: true });
  expect(partsOf(session.stored, "/spill")?.pruning).toMatchObject({ enabled: true, childSessions: true });
  const { session: fork } = await core.registry.files.fork("child", "entry");
  expect([fork.stored.delegatedBy, fork.stored.ownPruning]).toEqual(["parent", { enabled: true, childSessions: true }]);
});

test("reporting that pruning is off starts no pi", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd }, "s");
  await session.supervisor.hibernate(false);
  const parts = { pruning: "pruning_disabled", cacheAudit: "unsupported_by_pi" } as const;
  const refusals = rows.flatMap(([name, { part }]) => {
    const call = async () =>
      await under(requirePart(core.registry), name, () => name)({ sessionId: "s" }, { signal: never });
    return part === undefined ? [] : [expect(call()).rejects.toMatchObject({ kind: parts[part] })];
  });
  expect(refusals).toHaveLength(9);
  await Promise.all(refusals);
  const handler = pruningHandlers(core.registry)["pruning/sweep"];
  const sweep = async () => {
    await under(requirePart(core.registry), "pruning/sweep", handler)({ sessionId: "s", last: 1 }, { signal: never });
  };
  await expect(sweep()).rejects.toMatchObject({ kind: "pruning_disabled", data: { reason: "disabled" } });
  expect(session.info().state).toBe("hibernated");
});

test("invalid options change nothing: contradictory limits, invalid prompts, compaction below the limit", async () => {
  await using core = await startCore();
  const pruning = { enabled: true, maxContext: 0.8 };
  const session = await core.registry.create({ cwd: core.cwd, pruning });
  const dir = join(core.root, "prompts");
  mkdirSync(dir);
  writeFileSync(join(dir, "turn.md"), "\n{{wrong}}");
  const wrong: readonly (readonly [PruningOptions, string, RegExp])[] = [
    [
      { minContext: 0.9 },
      "invalid_params",
      /^pruning\.minContext: 0\.9 is not below pruning\.maxContext, which is 0\.8\.$/,
    ],
    [
      { prompts: { dir } },
      "path_invalid",
      /^pruning\.prompts\.dir: ".*turn\.md", line 2: \{\{wrong\}\} is not a variable/,
    ],
    [{ prompts: { dir: join(dir, "none") } }, "path_invalid", /^pruning\.prompts\.dir: ".*none" does not exist\.$/],
  ];
  for (const [given, kind, message] of wrong) {
    await expect(configure(session, given)).rejects.toMatchObject({ kind, message: expect.stringMatching(message) });
  }
  const compaction = { enabled: true, thresholdPercent: 0.75 };
  await expect(session.parts.configuring.configure({ compaction }, never)).rejects.toMatchObject({
    kind: "invalid_params",
    message: "pruning.maxContext: 0.8 is not below optimisation.compaction.thresholdPercent, which is 0.75.",
  });
  expect(session.stored.options).toMatchObject({ pruning });
  expect(session.stored.options).not.toHaveProperty("optimisation");
  const create = core.registry.create({ cwd: core.cwd, pruning: { ...pruning, minContext: 0.8 } });
  await expect(create).rejects.toMatchObject({ kind: "invalid_params" });
});

test("concurrent requests by pi's user to reread the configuration are merged, and errors are shown in pi", async () => {
  await using core = await startCore();
  core.behave("tell-frames");
  writeProject(core, '{"pruning": {"enabled": true}}');
  const dir = join(core.root, "prompts");
  mkdirSync(dir);
  const session = await core.registry.create({ cwd: core.cwd, approve: true, pruning: { prompts: { dir } } });
  const heard = recorder();
  session.subscribe(heard);
  for (let i = 0; i < 100; i += 1) session.parts.reload();
  await heard.until(() => told(heard.heard).length === 2);
  const { pruning } = session.stored.options;
  writeFileSync(join(dir, "turn.md"), "{{wrong}}");
  session.parts.reload();
  await heard.until(({ params }) => params.event?.type === "frame_came" && params.event.kind === "notify");
  expect(told(heard.heard)).toHaveLength(2);
  expect(session.stored.options.pruning).toEqual(pruning);
});

test("rereading all files skips a missing directory of texts and succeeds", async () => {
  await using core = await startCore();
  const dir = join(core.root, "prompts");
  mkdirSync(dir);
  const pruning = { enabled: true, nudgeFrequency: 7, prompts: { dir } };
  const session = await core.registry.create({ cwd: core.cwd, pruning });
  rmSync(dir, { recursive: true });
  await expect(configure(session, {}, true)).rejects.toMatchObject({ kind: "path_invalid" });
  const { configuration } = await configure(session, { prompts: { dir: null } }, true);
  expect(configuration).toMatchObject({ nudgeFrequency: 7, prompts: { dir: null } });
  expect((await configure(session, {}, true)).configuration.prompts).toEqual({ dir: null });
});
