import { afterAll, beforeAll, describe, test } from "vitest";
import type { Delivery, DeliveryHandle } from "../../../client/index.ts";
import { gatesOf } from "../../../provider/reply.ts";
import { agentStates, behaviours, type Expected } from "./cells.ts";
import { Cell, type MatrixStage, startMatrix } from "./play.ts";

// What the provider does × what the agent is doing × the provider's API: each cell ends in the one right state.

let matrix: MatrixStage;
beforeAll(async () => {
  matrix = await startMatrix({
    settings: {
      retry: { enabled: true, maxRetries: 2, baseDelayMs: 250, maxAgentDelayMs: 1_000, provider: { maxRetries: 0 } },
      compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 40 },
    },
  });
});
afterAll(() => matrix[Symbol.asyncDispose]());

const cells = agentStates.flatMap((state) =>
  behaviours.map((behaviour) => ({ state, behaviour, title: behaviour.title })),
);

/** The record once it is where it has to come to: `answered`, parked, or delivered with its run over. */
async function ended(push: DeliveryHandle): Promise<Delivery> {
  try {
    return await push.wait("answered");
  } catch {
    return await push.get();
  }
}

function summary(delivery: Delivery): Expected {
  const { state, reason, attempts } = delivery;
  return {
    state: state as Expected["state"],
    ...(reason === undefined ? {} : { reason: reason.code }),
    attempts: attempts.map(({ outcome, evidence, status }) => [outcome ?? "open", evidence, status] as const),
  };
}

describe.each(["scripted", "scripted-anthropic"] as const)("with %s", (api) => {
  test.concurrent.for(cells)("$state: the provider $title", async ({ state, behaviour }, { expect }) => {
    const { title, abort } = behaviour;
    const expected = behaviour.expectedWhile?.[state] ?? behaviour.expected;
    const cell = await Cell.open(matrix, `${api} ${state} ${title}`, api);
    if (behaviour.needsPast === true) await cell.tellStories();
    const replies = behaviour.replies();
    cell.answerPush(replies);
    const [gate] = replies.flatMap(gatesOf);
    const deliveryId = `m-${api}-${state}-${title}`.replaceAll(/\W+/g, "-");
    let push: DeliveryHandle | undefined;
    const aborted = (async () => {
      if (abort === undefined) return;
      await gate?.reached;
      if (abort === "mid-stream") await push?.delivered;
      await cell.session.abort();
    })();
    await cell.during(state, async () => {
      push = cell.session.push({ customType: "matrix", content: cell.pushed, deliveryId });
      await push.accepted;
      if (state !== "idle") await expect.poll(async () => (await push?.get())?.state).toBe("held");
    });
    const delivery = await ended(push as unknown as DeliveryHandle);
    await aborted;
    gate?.open();
    expect(summary(delivery)).toEqual(expected);
    expect(await cell.entries(deliveryId)).toBe(1);
    expect(cell.carrying.map((request) => request.countText(cell.pushed, { roles: ["user"] }))).toEqual(
      expected.attempts.map(() => 1),
    );

    if (expected.state === "parked") {
      // Nothing is lost: a later run carries it.
      await expect.poll(async () => (await cell.session.get()).state).toBe("idle");
      await cell.prompt("Go on.");
      expect((await cell.session.delivery(deliveryId).answered).state).toBe("answered");
      expect(cell.carrying.at(-1)?.countText(cell.pushed, { roles: ["user"] })).toBe(1);
      expect(await cell.entries(deliveryId)).toBe(1);
    }
    expect(cell.requests.flatMap(({ violations }) => violations)).toEqual([]);
    await cell.session.close();
  });
});
