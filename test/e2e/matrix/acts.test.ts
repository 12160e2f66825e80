import { afterAll, beforeAll, describe, expect, type TestContext, test } from "vitest";
import { type ProviderAct, providerActs } from "./acts.ts";
import { type AgentState, agentStates, compacting } from "./agents.ts";
import { type Api, attemptsOf, endOf, MatrixStage, note } from "./matrix-stage.ts";

// Every act of the provider, in every state of the agent, with both APIs: each has one right end.

const apis: readonly Api[] = ["scripted", "scripted-anthropic", "scripted-google"];
let world: MatrixStage;

beforeAll(async () => {
  // The back-off is long enough for a push to arrive during it.
  world = await MatrixStage.open({
    settings: {
      retry: { enabled: true, maxRetries: 3, baseDelayMs: 60, maxAgentDelayMs: 60, provider: { maxRetries: 0 } },
    },
  });
});
afterAll(async () => await world[Symbol.asyncDispose]());

interface Case {
  readonly api: Api;
  readonly agent: AgentState;
  readonly act: ProviderAct;
}

const cases: readonly Case[] = apis.flatMap((api) =>
  agentStates.flatMap((agent) => providerActs.map((act) => ({ api, agent, act }))),
);

/** pi's adapter for Google reports no headers: the first content is the evidence, without a status. */
function withoutHeaders(attempt: string): string {
  return attempt.replace("headers 200", "content");
}

async function runCell({ api, agent, act }: Case, { task }: Pick<TestContext, "task">): Promise<void> {
  await using cell = await world.cellAnywhere(api);
  const addsHistory = act.needsHistory === true && agent !== compacting;
  if (addsHistory) await cell.addHistory();
  const before = agent.requestsBefore + (addsHistory ? 2 : 0);
  const right = agent === compacting ? (act.afterCompaction ?? act) : act;
  const rightAttempts = right.attempts.map((attempt) =>
    api === "scripted-google" ? withoutHeaders(attempt) : attempt,
  );
  const { replies: all, act: doMeanwhile } = act.make();
  const replies = all.slice(0, right.attempts.length);
  const delivery = await agent.reach(cell, () => {
    cell.add(...replies);
    return cell.push();
  });
  await doMeanwhile?.(cell, delivery);
  const end = await cell.rest(delivery);
  await cell.idle();
  note(task, { does: act.name, where: agent.name, api, end: endOf(end) });

  expect(endOf(end)).toBe(right.end);
  expect(attemptsOf(end)).toEqual(rightAttempts);
  expect(cell.carried.slice(0, before)).toEqual(Array.from({ length: before }, () => 0));
  expect(cell.carried.slice(before)).toEqual(right.attempts.map(() => 1));
  if (act.needsHistory === true) expect(cell.summaries).toBeGreaterThan(0);
  else expect(cell.summaries).toBe(agent === compacting ? 1 : 0);
  expect(await cell.entries(delivery.id)).toBe(1);

  if (end.state === "parked") {
    await cell.session.promptAndWait("Go on.");
    expect(endOf(await delivery.answered)).toBe("answered");
    expect(cell.carried.at(-1)).toBe(1);
    expect(await cell.entries(delivery.id)).toBe(1);
  }
  cell.expectLawful();
  await cell.idle();
  cell.done();
}

describe("the one right end of a push", () => {
  test.concurrent.for(cases)(
    "when the agent is $agent.name and the provider does: $act.name ($api)",
    async (cell, context) => {
      await runCell(cell, context);
    },
  );
});
