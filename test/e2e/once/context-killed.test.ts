import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesBelow } from "../../helpers/files.ts";
import { startKillableStage } from "../../helpers/killable-stage.ts";

const pi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");
const items = [
  { role: "user", content: "What is 2+2?", timestamp: 1 },
  { role: "assistant", content: "4.", timestamp: 2 },
];
const context = { document: { format: "pi-rpcd/context", version: 1, items } };

test("a daemon killed while it creates sessions with contexts leaves each one complete or absent", async () => {
  await using stage = await startKillableStage({ pi });
  const { cwd, stateDir, root } = stage;
  // pi's model is known from now on.
  const { sessionId } = await stage.client.call("session/create", { cwd, context });
  const left = (): string[] =>
    [...filesBelow(root).keys()].flatMap((name) => {
      const [, id] = /([0-9a-f-]{36})\.(?:jsonl|jsonl\.unfinished|context\.json)$/.exec(name) ?? [];
      return id === undefined ? [] : [id];
    });
  expect(left()).toEqual([sessionId]);
  const hanging = join(cwd, ".fake-pi");
  writeFileSync(hanging, "hang-at-start");
  const created = [false, true].map((ephemeral) => stage.client.call("session/create", { cwd, context, ephemeral }));
  const outcomes = Promise.allSettled(created);
  await expect.poll(left).toHaveLength(3);
  await stage.restart();
  expect(new Set((await outcomes).map(({ status }) => status))).toEqual(new Set(["rejected"]));
  rmSync(hanging);
  const { sessions } = await stage.client.call("session/list", {});
  expect(left().toSorted()).toEqual(sessions.map((session) => session.sessionId).toSorted());
  expect(readdirSync(join(stateDir, "creating"))).toEqual([]);
  for (const session of sessions) {
    const inspected = await stage.client.call("context/inspect", { sessionId: session.sessionId });
    expect(inspected.counts).toMatchObject({ items: 2 });
    const { disposition } = await stage.client.call("session/prompt", { sessionId: session.sessionId, text: "And?" });
    expect(disposition).toBe("started");
  }
});
