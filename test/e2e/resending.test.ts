import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { DeliveryHandle, SessionHandle } from "../../client/index.ts";
import { carrierText } from "../../extension/stages/carrier.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, delayed, hold, status } from "../../provider/reply.ts";
import { type StageOfTest, shareStage } from "../helpers/shared-stage.ts";

/** Makes it possible to compact a short conversation; otherwise it has no effect. */
const compaction = { enabled: true, reserveTokens: 1_000, keepRecentTokens: 100 };
const shared = shareStage({ agent: { settings: { compaction } } });

/** A push that is in the transcript and whose request was refused. */
async function parked(session: SessionHandle, content: string): Promise<DeliveryHandle> {
  const push = session.push({ customType: "n", content });
  await expect(push.delivered).rejects.toMatchObject({ delivery: { state: "parked" } });
  return push;
}

const resend = ({ client }: StageOfTest, { id: deliveryId }: DeliveryHandle) =>
  client.call("delivery/resend", { deliveryId });

async function entries(session: SessionHandle, text: string): Promise<number> {
  const lines = readFileSync((await session.get()).file, "utf8").split("\n");
  return lines.filter((line) => line.includes('"custom_message"') && line.includes(text)).length;
}

async function settled(session: SessionHandle): Promise<void> {
  await expect.poll(async () => (await session.get()).state).toBe("idle");
}

test("a parked push that is sent again many times at once makes one request", async () => {
  await using stage = await shared.use({ script: [status(400)] });
  const session = await stage.freshSession();
  const push = await parked(session, "only once");
  await Promise.all(Array.from({ length: 5 }, () => resend(stage, push).catch(() => {})));
  expect((await push.answered).state).toBe("answered");
  await settled(session);
  expect(stage.provider.requests.map((request) => request.countText("only once"))).toEqual([1, 1]);
  expect(await entries(session, "only once")).toBe(1);
  expect(await entries(session, carrierText)).toBe(1);
});

test("a parked push that is sent again right before an abort is parked again or answered", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [status(400), delayed(hold(gate), answer("Never."))] });
  const session = await stage.session();
  const push = await parked(session, "and stopped");
  await Promise.all([resend(stage, push), session.abort()]);
  await settled(session);
  gate.open();
  expect((await push.get()).state).toBe("parked");
  await resend(stage, push);
  expect((await push.answered).state).toBe("answered");
  expect(await entries(session, "and stopped")).toBe(1);
  expect(stage.provider.requests.every((request) => !request.hasText(carrierText))).toBe(true);
});

test("a parked push that is resent after its pi died is carried by one request of the next pi", async () => {
  await using stage = await shared.use({ script: [status(400)] });
  const session = await stage.session();
  const push = await parked(session, "over a crash");
  const { pid } = await session.get();
  process.kill(pid as number, "SIGKILL");
  await Promise.all([resend(stage, push).catch(() => {}), resend(stage, push).catch(() => {})]);
  await expect.poll(async () => (await session.get()).state).not.toBe("running");
  if ((await push.get()).state === "parked") await resend(stage, push);
  expect((await push.answered).state).toBe("answered");
  await settled(session);
  expect(stage.provider.requests).toHaveLength(2);
  expect(await entries(session, "over a crash")).toBe(1);
});

test("a parked push that is resent during a compaction is carried by one request after it", async () => {
  const gate = new Gate();
  await using stage = await shared.use({
    script: [answer("One."), status(400), delayed(hold(gate), answer("A summary."))],
  });
  const session = await stage.freshSession();
  await session.promptAndWait("first words ".repeat(200));
  const push = await parked(session, "behind the summary ".repeat(30));
  const compacted = stage.client.call("session/command", { sessionId: session.id, command: { type: "compact" } });
  await gate.reached;
  await resend(stage, push);
  expect(stage.provider.requests).toHaveLength(3);
  gate.open();
  await compacted;
  expect((await push.answered).state).toBe("answered");
  await settled(session);
  expect(stage.provider.requests).toHaveLength(4);
  expect(stage.provider.requests.every((request) => !request.hasText(carrierText))).toBe(true);
});
