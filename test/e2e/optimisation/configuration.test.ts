import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import { MAX_CONFIGURATION_BYTES } from "../../../protocol/configuration/whole.ts";
import { defaultOptimisation, leanOptimisation } from "../../../protocol/optimisation/config.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { answer, call } from "../../../provider/reply.ts";
import { fallAsleep } from "../../helpers/asleep.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const inspect = ({ id: sessionId }: SessionHandle) => stage.client.call("optimisation/inspect", { sessionId });
const configure = ({ id: sessionId }: SessionHandle, optimisation: OptimisationOptions) =>
  stage.client.call("optimisation/configure", { sessionId, optimisation });
const create = (more: object) => stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", ...more });

test("with lean each part of the profile reports that it is on, and each option has its value", async () => {
  const session = await create({ profile: "lean" });
  const lines = 3_000;
  stage.provider.add(answer(call("bash", { command: `seq 1 ${lines}` })), answer("They are counted."));
  await session.runUntilSettled("Count.");
  const { parts, configuration, window } = await inspect(session);
  const on = Object.entries(parts).filter(([, { state }]) => state === "on");
  expect(on.map(([part]) => part).toSorted()).toEqual(Object.keys(leanOptimisation).toSorted());
  expect(Object.keys(parts).toSorted()).toEqual(Object.keys(defaultOptimisation).toSorted());
  expect(configuration.contextFiles).toEqual({ ...defaultOptimisation.contextFiles, enabled: true, dedupe: true });
  expect(window.tokens).toBeGreaterThan(0);
  expect(window.used).toBeGreaterThan(window.byKind["user"] ?? 0);
  for (const kind of ["system", "tools", "user", "assistant", "toolResults"]) {
    expect(window.byKind[kind]).toBeGreaterThan(0);
  }
  // The result is shortened, and the omitted text is in the state directory as long as a session file names it.
  expect(window.masked).toMatchObject([{ recallId: "r001", tool: "bash", part: "toolResults" }]);
  const spill = join(stage.stateDir, "spill");
  const texts = readdirSync(spill);
  expect(texts).toHaveLength(1);
  expect(readFileSync(join(spill, texts[0] ?? ""), "utf8")).toContain(`\n${lines}`);
  expect([statSync(spill).mode & 0o777, statSync(join(spill, texts[0] ?? "")).mode & 0o777]).toEqual([0o700, 0o600]);
});

test("a session without parts reports it, can be configured while running and hibernated, and survives the daemon", async () => {
  const session = await create({});
  const bare = await inspect(session);
  expect(bare.configuration).toEqual(defaultOptimisation);
  expect(new Set(Object.values(bare.parts).map(({ state }) => state))).toEqual(new Set(["off"]));
  expect(bare.window.used).toBeGreaterThan(0);

  expect((await configure(session, { cost: { warnAt: 0.5 } })).from).toBe("nextRequest");
  const { parts, configuration } = await inspect(session);
  expect([parts["cost"]?.state, configuration.cost?.warnAt, parts["masking"]?.state]).toEqual(["on", 0.5, "off"]);

  await fallAsleep(stage.client, session.id);
  const { from } = await configure(session, { cost: { enabled: false }, estimator: { window: 7 } });
  expect([from, (await session.get()).state]).toEqual(["nextPi", "hibernated"]);
  await stage.restart();
  const later = stage.client.session(session.id);
  expect(await inspect(later)).toMatchObject({ cached: true, outdated: true, parts: { cost: { state: "on" } } });
  expect(await later.runUntilSettled("Are you there?")).toMatchObject({ stopReason: "stop" });
  const known = await inspect(later);
  expect([known.parts["cost"]?.state, known.parts["estimator"]?.state]).toEqual(["off", "on"]);
  expect(known.configuration.estimator).toEqual({ ...defaultOptimisation.estimator, enabled: true, window: 7 });
});

test("mistakes are reported over the wire by their keys, before a pi is started", async () => {
  // Here the client library would refuse it itself.
  const wrong = async (params: object) => {
    const { url, token } = stage.daemon.file;
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify({ cwd: stage.cwd, ...params });
    const answer = await fetch(new URL("/v1/sessions", url.replace(/^ws/, "http")), { method: "POST", headers, body });
    return [answer.status, ((await answer.json()) as { detail: string }).detail];
  };
  const before = await stage.client.listSessions();
  expect(await wrong({ optimisation: { compaction: { thresholdPercent: 0.3 } } })).toEqual([
    400,
    "optimisation.compaction.thresholdPercent: 0.3 is below 0.5.",
  ]);
  expect(await wrong({ profile: "lean", optimisation: { cost: { budgetUsd: 0 } } })).toEqual([
    400,
    "optimisation.cost.budgetUsd: 0 is not above 0.",
  ]);
  const both = await wrong({ name: "\u0001", optimisation: { maskin: {} } });
  expect(both[1]).toMatch(
    /^The params of session\/create are wrong: \/name .*\. optimisation\.maskin: unknown key; the nearest is masking\.$/,
  );
  expect(await stage.client.listSessions()).toHaveLength(before.length);
});

test("the largest configuration reaches pi, at its start and by a frame", async () => {
  const section = { heading: "\u{1F642}".repeat(60), label: "x" };
  const bytes = Buffer.byteLength(JSON.stringify(section)) + 1;
  const empty = Buffer.byteLength(JSON.stringify(defaultOptimisation));
  const sections = Array.from({ length: 256 }, () => section);
  // The remaining bytes go into names of models.
  const each = '"provider/","{"thresholdPercent":0.5},'.length;
  const left = MAX_CONFIGURATION_BYTES - empty - sections.length * bytes - 1_000;
  const models = Object.fromEntries(
    Array.from({ length: 200 }, (_, at) => [
      `provider/${String(at).padEnd(Math.min(256, Math.floor(left / 200) - each), "m")}`,
      { thresholdPercent: 0.5 },
    ]),
  );
  const optimisation = { contextFiles: { sections }, compaction: { enabled: false, models } };
  const labels = Object.fromEntries(Array.from({ length: 32 }, (_, at) => [`label${at}`, "\u{1F642}".repeat(256)]));
  const session = await create({ optimisation, labels });
  expect((await inspect(session)).configuration.contextFiles?.sections).toHaveLength(256);
  expect((await configure(session, { masking: { afterTurns: 3 } })).from).toBe("nextRequest");
  expect((await inspect(session)).configuration.compaction?.models).toEqual(models);
  const more = { compaction: { models: { [`p/${"m".repeat(256)}`]: { thresholdPercent: 0.6 } } } };
  const prefetch = Array.from({ length: 64 }, () => "s".repeat(128));
  const refused = configure(session, { ...more, skills: { prefetch }, dynamicTools: { keep: many(256) } });
  await expect(refused).rejects.toMatchObject({
    kind: "invalid_params",
    message: /bytes of JSON exceed the limit of 131072\.$/,
  });
});

test("a trusted project's configuration applies below profile and call; an untrusted one's does not", async () => {
  const cwd = join(stage.root, "project");
  mkdirSync(join(cwd, ".pi"), { recursive: true });
  writeFileSync(join(cwd, ".pi", "pi-rpcd.jsonc"), '{\n// ours\n"optimisation": {"masking": {"afterTurns": 5}}}');
  const trusted = await create({ cwd, approve: true, optimisation: { masking: { protectTokens: 9 } } });
  const { masking } = (await inspect(trusted)).configuration;
  expect(masking).toEqual({ ...defaultOptimisation.masking, enabled: true, afterTurns: 5, protectTokens: 9 });
  const file = (await trusted.get()).file;
  await trusted.runUntilSettled("hello");
  await trusted.close();
  const opened = await stage.client.openSession({ file, approve: true });
  expect((await inspect(opened)).configuration.masking?.afterTurns).toBe(5);
});

const many = (count: number) => Array.from({ length: count }, (_, at) => `tool_${String(at).padEnd(120, "t")}`);
