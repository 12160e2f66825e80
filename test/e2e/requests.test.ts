import { expect, test } from "vitest";
import { answer, call, status } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { shareStage } from "../helpers/shared-stage.ts";

const shared = shareStage();

test("the requests of a run, with a failed one and one that carried a push, add up to the session's cost, without a pi", async () => {
  await using stage = await shared.use({
    script: [
      status(500, { message: "Overloaded." }),
      answer("I look.", call("bash", { command: "true" })),
      answer("Done."),
    ],
  });
  const session = await stage.freshSession();
  const pushed = session.push({ customType: "note", content: "Look at the build.", triggerTurn: true });
  await pushed.answered;
  await session.waitForIdle();
  const { client } = stage;
  await fallAsleep(client, session.id);
  const { requests, isWhole } = await client.call("request/list", { sessionId: session.id });
  const { total } = await client.call("cost/report", { sessionId: session.id });
  const { generation, state } = await session.get();

  expect(isWhole).toBe(true);
  expect(requests.map(({ kind, stopReason }) => [kind, stopReason])).toEqual([
    ["answer", "error"],
    ["answer", "toolUse"],
    ["answer", "stop"],
  ]);
  expect(requests[0]?.error).toContain("Overloaded.");
  const used = requests.reduce((sum, { usage }) => sum + (usage?.totalTokens ?? 0), 0);
  expect(used).toBe(total.totalTokens);
  expect(used).toBeGreaterThan(0);
  const { attempts } = await pushed.answered;
  expect(requests.map(({ carried }) => carried?.requestId)).toEqual([
    ...attempts.map(({ requestId }) => requestId),
    ...requests.slice(attempts.length).map(() => undefined),
  ]);
  expect(requests[1]?.carried).toMatchObject({ status: 200, evidence: "headers", deliveryIds: [pushed.id] });
  for (const { startedAt = Number.NaN, endedAt } of requests) expect(endedAt).toBeGreaterThanOrEqual(startedAt);
  expect([generation, state]).toEqual([1, "hibernated"]);
});
