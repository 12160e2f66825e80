import { expect, test } from "vitest";
import type { Delivery } from "../../../protocol/delivery.ts";
import type { SessionInfo } from "../../../protocol/session.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, behind, hold, status } from "../../../provider/reply.ts";
import { errorName, lines, Scene } from "./scene.ts";

test("deliveries are listed, shown as a timeline, taken back, and sent again", async () => {
  await using scene = await Scene.open({ script: [status(400), answer("Now.")] });
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  const push = ["push", sessionId, "--as"];
  const refused = await scene.run([...push, "steer", "--id", "d1", "--wait", "delivered", "build red"]);
  expect(refused.code).toBe(4);
  await scene.run([...push, "nextTurn", "--id", "d2", "--expires", "3600", "--on-abort", "drop", "for later"]);

  const { deliveries } = await scene.json<{ deliveries: Delivery[] }>(["deliveries", sessionId]);
  expect(deliveries.map(({ deliveryId }) => deliveryId)).toEqual(["d2", "d1"]);
  const table = await scene.run(["deliveries", "--state", "parked"]);
  expect(table.stdout).toMatch(/^DELIVERY +STATE +AGE +ATTEMPTS +TYPE +SESSION +REASON\nd1 +parked .*run_failed\)\n$/);
  expect(errorName((await scene.run(["deliveries", "--state", "red", "--json"])).stderr)).toBe("usage");
  expect(errorName((await scene.run(["deliveries", "--limit", "501", "--json"])).stderr)).toBe("usage");

  const shown = await scene.run(["delivery", "show", "d1"]);
  expect(shown.stdout).toMatch(/^d1 {2}parked\n/);
  expect(shown.stdout).toMatch(/^1 +\+\d+\.\d{3} s +\d+\.\d{3} s +failed +- +confirmed +400 /m);
  expect(await scene.json<Delivery>(["delivery", "show", "d2"])).toMatchObject({
    deliveryId: "d2",
    deliverAs: "nextTurn",
  });

  expect((await scene.run(["delivery", "cancel", "d2"])).stdout).toBe(
    "d2 is cancelled: it is not in the transcript and will not be.\n",
  );
  const late = await scene.run(["delivery", "cancel", "d1"]);
  expect([late.code, late.stdout]).toEqual([4, "Too late: d1 is parked.\n"]);
  expect((await scene.run(["delivery", "resend", "d1"])).code).toBe(0);
  const answered = await scene.run([...push, "steer", "--id", "d1", "--wait", "answered", "build red"]);
  expect(answered.code).toBe(0);
  expect(errorName((await scene.run(["delivery", "resend", "d1", "--json"])).stderr)).toBe("wrong_state");
  expect(errorName((await scene.run(["delivery", "show", "nowhere", "--json"])).stderr)).toBe("delivery_not_found");
  expect(errorName((await scene.run(["delivery", "eat", "d1", "--json"])).stderr)).toBe("usage");
});

test("a push whose state is waited for outlives its daemon", async () => {
  await using scene = await Scene.open();
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  const push = scene.start(["push", sessionId, "--as", "nextTurn", "--id", "p1", "--wait", "answered", "not lost"]);
  await push.said(/ held /);
  await scene.run(["stop"]);
  await push.said(/the daemon has gone/);
  await scene.run(["start"]);
  expect((await scene.run(["prompt", sessionId, "hello"])).code).toBe(0);
  const { code, stdout } = await push.ended;
  expect([code, stdout.match(/ answered /g)]).toEqual([0, [" answered "]]);
  expect(scene.provider.requests.at(-1)?.countText("not lost")).toBe(1);
});

test("a watch shows each state of each delivery, over the end of one daemon and the start of the next", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [behind(hold(gate), answer("Got it."))] });
  const { sessionId } = await scene.json<SessionInfo>(["new"]);
  const watch = scene.start(["deliveries", "--watch"]);
  const later = scene.start(["deliveries", "last", "--watch", "--json", "--state", "answered"]);
  await scene.run(["push", sessionId, "--id", "w1", "watched"]);
  await gate.reached;
  await watch.said(/w1 {2}prepared/);
  gate.open();
  await watch.said(/w1 {2}answered/);
  await scene.run(["stop"]);
  await watch.said(/has gone/);
  await scene.run(["start"]);
  await watch.said(/there again/);
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
