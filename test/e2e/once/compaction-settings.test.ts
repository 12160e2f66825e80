import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createAgentDir } from "../../../provider/agent-dir.ts";
import { startProvider } from "../../../provider/server.ts";
import { startStage } from "../../helpers/stage.ts";

const compaction = { thresholdPercent: 0.5, route: "settings" } as const;

test("the route settings is refused if the configuration directory is the user's", async () => {
  await using stage = await startStage();
  const before = readFileSync(join(stage.agentDir.path, "settings.json"), "utf8");
  const created = stage.client.call("session/create", { cwd: stage.cwd, optimisation: { compaction } });
  await expect(created).rejects.toMatchObject({
    message: expect.stringContaining('Route "settings" would change your pi settings; use "draft".'),
  });
  const session = await stage.session();
  const configured = stage.client.call("optimisation/configure", {
    sessionId: session.id,
    optimisation: { compaction },
  });
  await expect(configured).rejects.toMatchObject({ message: expect.stringContaining('use "draft"') });
  expect(readFileSync(join(stage.agentDir.path, "settings.json"), "utf8")).toBe(before);
});

test("in a directory of the daemon's own, pi compacts at the threshold, with one value for all sessions", async () => {
  await using provider = await startProvider();
  const models = [{ id: "model-1", contextWindow: 100_000, maxTokens: 4_096 }];
  await using own = await createAgentDir({ provider, models });
  await using stage = await startStage({ env: () => ({ PI_RPCD_AGENT_DIR: own.path }) });
  const create = (optimisation: object) =>
    stage.client.call("session/create", { cwd: stage.cwd, model: "scripted/model-1", optimisation });
  const { sessionId } = await create({ compaction });

  const settings = JSON.parse(readFileSync(join(own.path, "settings.json"), "utf8"));
  expect(settings.defaultProvider).toBe("scripted");
  expect(settings.compaction.modelOverrides["scripted/model-1"]).toEqual({
    reserveTokens: 50_000,
    keepRecentTokens: 12_500,
  });
  expect(statSync(join(own.path, "settings.json")).mode & 0o777).toBe(0o600);

  const other = create({ compaction: { ...compaction, thresholdPercent: 0.6 } });
  await expect(other).rejects.toMatchObject({
    message: expect.stringContaining(
      'Route "settings" needs one value for all sessions of this configuration directory; use "draft".',
    ),
  });
  const drafting = await create({ compaction: { thresholdPercent: 0.6, route: "draft" } });
  await stage.client.call("session/close", { sessionId: drafting.sessionId });

  const session = stage.client.session(sessionId);
  for (const part of ["first", "second", "third"])
    await session.promptAndWait(`The ${part} part. ${"word ".repeat(16_000)}`);
  const { entries } = await stage.client.call("session/getEntries", { sessionId });
  expect(entries.filter(({ type }) => type === "compaction")).toHaveLength(1);
});
