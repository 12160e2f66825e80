import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Heard, recorder, startCore } from "../../helpers/core.ts";

const never = new AbortController().signal;
const configure = (session: Session, optimisation: OptimisationOptions) =>
  session.parts.configuring.configure(optimisation, never);
/** The configuration that the helper received. */
const told = (heard: readonly Heard[]) =>
  heard.flatMap(({ params }) =>
    params.event?.type === "frame_came" && params.event.kind === "configure" ? [params.event.parts] : [],
  );

test("configuring a hibernated session starts no pi, and the next daemon keeps the configuration", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd, optimisation: { masking: { afterTurns: 3 } } }, "s");
  await session.supervisor.hibernate(false);
  const { generation } = session.info();
  const { from, configuration } = await configure(session, { masking: { protectTokens: 7 }, cost: { enabled: true } });
  expect(from).toBe("nextPi");
  expect(configuration.masking).toMatchObject({ enabled: true, afterTurns: 3, protectTokens: 7 });
  expect(session.info()).toMatchObject({ state: "hibernated", generation });
  await core.kill();
  const { options } = core.registry.get("s").stored;
  expect(options.optimisation).toEqual({
    masking: { afterTurns: 3, protectTokens: 7 },
    cost: { enabled: true },
  });
});

test("a running pi gets each change immediately and once, also when everything is turned off", async () => {
  await using core = await startCore();
  core.behave("tell-frames");
  const session = await core.registry.create({ cwd: core.cwd });
  const heard = recorder();
  session.subscribe(heard);
  expect((await configure(session, { masking: { afterTurns: 3 } })).from).toBe("nextRequest");
  expect((await configure(session, { masking: { afterTurns: 3 } })).from).toBe("nextRequest");
  await Promise.all([
    configure(session, { cost: { warnAt: 0.5 } }),
    configure(session, { masking: { enabled: false }, cost: { enabled: false } }),
  ]);
  await heard.until(({ params }) => params.event?.type === "frame_came" && params.event.parts === null);
  expect(told(heard.heard).map((parts) => parts?.optimisation.masking.enabled)).toEqual([true, true, undefined]);
  expect(told(heard.heard)[0]).toMatchObject({ spillDirectory: join(core.root, "spill"), labels: {} });
});

test("an invalid configuration changes nothing, and a path must point to a file", async () => {
  await using core = await startCore();
  core.behave("tell-frames");
  const session = await core.registry.create({ cwd: core.cwd, tools: ["read"] });
  const heard = recorder();
  session.subscribe(heard);
  const wrong: readonly (readonly [OptimisationOptions, string, RegExp])[] = [
    [{ skills: { enabled: true, mode: "off" } }, "invalid_params", /^optimisation\.skills\.mode: "off" contradicts/],
    [
      { masking: { excludeTools: ["bash"] } },
      "invalid_params",
      /the session has no tool "bash": it is not in tools\.$/,
    ],
    [
      { compaction: { prompt: join(core.root, "none") } },
      "path_invalid",
      /^optimisation\.compaction\.prompt: .* does not/,
    ],
    [{ dynamicTools: { synonyms: core.cwd } }, "path_invalid", /synonyms: .* is not a file\.$/],
  ];
  for (const [given, kind, message] of wrong) {
    await expect(configure(session, given)).rejects.toMatchObject({ kind, message: expect.stringMatching(message) });
  }
  expect(session.stored.options).not.toHaveProperty("optimisation");
  expect(told(heard.heard)).toEqual([]);
  await session.close();
  await expect(configure(session, {})).rejects.toMatchObject({ kind: "session_closed" });
});

test("a pi that was started with a list of tools gets no more tools; the next one has them", async () => {
  await using core = await startCore();
  core.behave("tell-frames");
  const session = await core.registry.create({ cwd: core.cwd, tools: ["read"] });
  const heard = recorder();
  session.subscribe(heard);
  expect((await configure(session, { masking: { enabled: true } })).from).toBe("nextPi");
  expect(told(heard.heard)).toEqual([]);
  await session.supervisor.hibernate(false);
  await session.awake();
  expect((await configure(session, { masking: { afterTurns: 3 } })).from).toBe("nextRequest");
});

test("a starting pi uses the configuration as changed during its start", async () => {
  await using core = await startCore();
  core.behave("tell-frames");
  const session = await core.registry.create({ cwd: core.cwd });
  await session.supervisor.hibernate(false);
  const heard = recorder();
  session.subscribe(heard);
  const awake = session.awake();
  expect((await configure(session, { masking: { afterTurns: 3 } })).from).toBe("nextRequest");
  await awake;
  expect(session.stored.options.optimisation).toEqual({ masking: { afterTurns: 3 } });
});

test("a fork uses its session's configuration, and a pi taken from another session is reconfigured", async () => {
  await using core = await startCore();
  core.behave("tell-frames");
  const old = await core.registry.create({ cwd: core.cwd, optimisation: { masking: { afterTurns: 3 } } }, "old");
  const { session } = await core.registry.files.fork("old", "entry");
  expect(session.stored.options.optimisation).toEqual({ masking: { afterTurns: 3 } });
  const news = recorder();
  session.subscribe(news);
  await configure(session, { masking: { afterTurns: 4 } });
  await news.until(({ params }) => params.event?.type === "frame_came");
  expect(told(news.heard).map(({ optimisation }) => optimisation.masking.afterTurns)).toEqual([4]);
  expect(old.stored.options.optimisation).toEqual({ masking: { afterTurns: 3 } });
});

test("an invalid file of a trusted project disables only its own layer, and subscribers get the file, line and key", async () => {
  await using core = await startCore();
  mkdirSync(join(core.cwd, ".pi"));
  const file = join(core.cwd, ".pi", "pi-rpcd.jsonc");
  writeFileSync(file, '{"optimisation": {\n  "masking": {"afterTurns": 0}\n}}');
  const optimisation = { cost: { warnAt: 0.5 } };
  const session = await core.registry.create({ cwd: core.cwd, approve: true, optimisation });
  expect(session.stored.options.optimisation).toEqual(optimisation);
  const heard = recorder();
  session.subscribe(heard, { after: 0 });
  const { params } = await heard.until(({ method }) => method === "optimisation/degraded");
  expect(params).toMatchObject({
    part: "project",
    reason: `${file} has mistakes: line 2: optimisation.masking.afterTurns: 0 is below 1.`,
  });
  writeFileSync(file, '{"optimisation": {"masking": {"afterTurns": 5}}}');
  const next = await core.registry.create({ cwd: core.cwd, approve: true, optimisation });
  expect(next.stored.options.optimisation).toEqual({ ...optimisation, masking: { afterTurns: 5 } });
});

test("a session's directory is stored before its running pi may store texts, and an active run delays their removal", async () => {
  const noted: string[] = [];
  await using core = await startCore({ spill: { note: (directory) => noted.push(directory), wanted: () => {} } });
  core.behave("keep-running");
  const sessionDir = join(core.root, "elsewhere");
  mkdirSync(sessionDir);
  const session = await core.registry.create({ cwd: core.cwd, sessionDir });
  expect(noted).toEqual([]);
  expect((await configure(session, { toolResults: { enabled: true } })).from).toBe("nextRequest");
  expect(noted).toContain(sessionDir);
  expect(core.directory.isAnyUnwritten).toBe(false);
  const making = core.registry.create({ cwd: core.cwd });
  expect(core.directory.isAnyUnwritten).toBe(true);
  await making;
  await session.prompting.prompt({ text: "first", ifRunning: "refuse" });
  expect(session.state.kind).toBe("running");
  expect(core.directory.isAnyUnwritten).toBe(true);
});
