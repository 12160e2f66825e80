import { expect, test } from "vitest";
import type { Delivery } from "../../../../protocol/delivery.ts";
import type { SessionInfo } from "../../../../protocol/session.ts";
import { answer, status } from "../../../../provider/reply.ts";
import { errorName, Scene } from "../scene.ts";

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
    "d2 is cancelled: it will not be in the transcript.\n",
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
