import { expect, test } from "vitest";
import type { Delivery } from "../../../../protocol/delivery.ts";
import type { SessionInfo } from "../../../../protocol/session.ts";
import { Gate } from "../../../../provider/gate.ts";
import { answer, delayed, hold } from "../../../../provider/reply.ts";
import { lines, Scene } from "../scene.ts";

test("waiting for a push's state survives a restart of its daemon", async () => {
  await using scene = await Scene.open();
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  const push = scene.start(["push", sessionId, "--as", "nextTurn", "--id", "p1", "--wait", "answered", "not lost"]);
  await push.said(/ held /);
  await scene.run(["stop"]);
  await push.said(/the daemon is gone/);
  await scene.run(["start"]);
  expect((await scene.run(["prompt", sessionId, "hello"])).code).toBe(0);
  const { code, stdout } = await push.ended;
  expect([code, stdout.match(/ answered /g)]).toEqual([0, [" answered "]]);
  expect(scene.provider.requests.at(-1)?.countText("not lost")).toBe(1);
});

test("a watch shows each state of each delivery across a restart of the daemon", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [delayed(hold(gate), answer("Got it."))] });
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  const watch = scene.start(["deliveries", "--watch"]);
  const later = scene.start(["deliveries", "last", "--watch", "--json", "--state", "answered"]);
  await scene.run(["push", sessionId, "--id", "w1", "watched"]);
  await gate.reached;
  await watch.said(/w1 {2}prepared/);
  gate.open();
  await watch.said(/w1 {2}answered/);
  await scene.run(["stop"]);
  await watch.said(/is gone/);
  await scene.run(["start"]);
  await watch.said(/available again/);
  await scene.run(["push", sessionId, "--id", "w2", "after the restart"]);
  await watch.said(/w2 {2}answered/);
  await later.said(/"w2"/);
  for (const running of [watch, later]) running.kill("SIGINT");
  const [ended, json] = await Promise.all([watch.ended, later.ended]);
  expect([ended.code, json.code]).toEqual([130, 130]);
  const states = ended.stdout.split("\n").filter((line) => line.includes("  w1  "));
  expect(states.map((line) => line.split("  ")[2]?.trim())).toEqual([
    "accepted",
    "held",
    "inserted",
    "prepared",
    "delivered",
    "answered",
  ]);
  expect(lines<Delivery>(json.stdout).map(({ deliveryId }) => deliveryId)).toEqual(["w1", "w2"]);
});
