import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { leasePath } from "../../../server/pi/lease.ts";
import { startKillableStage } from "../../helpers/killable-stage.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { endingWithDaemon } from "../../helpers/stage.ts";

test("the next daemon takes over the sessions of a killed one, and deletes files that never got a message", async () => {
  await using stage = await startKillableStage({ config: endingWithDaemon });
  const [full, empty] = [await stage.session(), await stage.session()];
  await full.promptAndWait("one");
  const files = await Promise.all([full, empty].map(async (session) => (await session.get()).file));
  const [fullFile, emptyFile] = files as [string, string];
  expect(files.map((file) => existsSync(leasePath(file)))).toEqual([true, true]);
  await stage.restart();
  expect(files.map((file) => existsSync(leasePath(file)))).toEqual([false, false]);
  expect([existsSync(fullFile), existsSync(emptyFile)]).toEqual([true, false]);
  await using told = await Notifications.of(stage.stateDir, full.id);
  for (const { id } of [full, empty]) await stage.client.session(id).promptAndWait("two");
  expect(files.map((file) => existsSync(file) && existsSync(leasePath(file)))).toEqual([true, true]);
  expect(told.named("session/foreignWrite")).toEqual([]);
  expect(readdirSync(join(stage.stateDir, "creating"))).toEqual([]);
  expect(existsSync(join(stage.stateDir, "daemon.json"))).toBe(true);
});
