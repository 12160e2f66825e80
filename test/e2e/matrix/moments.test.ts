import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { PushParams } from "../../../client/index.ts";
import { type AgentState, backingOff, compacting, idle, inTool, streaming } from "./agents.ts";
import { type Api, attemptsOf, endOf, MatrixStage, note } from "./matrix-stage.ts";

// When each kind of push is handed over, in every state of the agent, and which request carries it.

const apis: readonly Api[] = ["scripted", "scripted-anthropic"];
let world: MatrixStage;
beforeAll(async () => {
  world = await MatrixStage.open({
    settings: {
      retry: { enabled: true, maxRetries: 3, baseDelayMs: 60, maxAgentDelayMs: 60, provider: { maxRetries: 0 } },
    },
  });
});
afterAll(async () => await world[Symbol.asyncDispose]());

type DeliverAs = NonNullable<PushParams["deliverAs"]>;

/** How many requests of the conversation carry the push, and where the push is when it stops moving by itself. */
interface Row {
  readonly agent: AgentState;
  readonly deliverAs: DeliverAs;
  readonly triggerTurn: boolean;
  readonly end: "answered" | "inserted" | "held";
  /** If it has stopped moving, the prompt that carries it makes one more request. */
  readonly requests: readonly number[];
}

const row = (
  agent: AgentState,
  deliverAs: DeliverAs,
  triggerTurn: boolean,
  end: Row["end"],
  requests: readonly number[],
): Row => ({ agent, deliverAs, triggerTurn, end, requests });

const rows: readonly Row[] = [
  row(idle, "steer", true, "answered", [1]),
  row(idle, "steer", false, "inserted", []),
  row(idle, "followUp", true, "answered", [1]),
  row(idle, "followUp", false, "inserted", []),
  row(idle, "nextTurn", true, "held", []),
  row(idle, "nextTurn", false, "held", []),
  row(streaming, "steer", true, "answered", [0, 1]),
  row(streaming, "steer", false, "inserted", [0]),
  row(streaming, "followUp", true, "answered", [0, 1]),
  row(streaming, "followUp", false, "inserted", [0]),
  row(streaming, "nextTurn", true, "held", [0]),
  row(streaming, "nextTurn", false, "held", [0]),
  row(inTool, "steer", true, "answered", [0, 1]),
  row(inTool, "steer", false, "answered", [0, 1]),
  row(inTool, "followUp", true, "answered", [0, 0, 1]),
  row(inTool, "followUp", false, "inserted", [0, 0]),
  row(inTool, "nextTurn", true, "held", [0, 0]),
  row(inTool, "nextTurn", false, "held", [0, 0]),
  row(compacting, "steer", true, "answered", [0, 0, 1]),
  row(compacting, "steer", false, "inserted", [0, 0]),
  row(compacting, "followUp", true, "answered", [0, 0, 1]),
  row(compacting, "followUp", false, "inserted", [0, 0]),
  row(compacting, "nextTurn", true, "held", [0, 0]),
  row(compacting, "nextTurn", false, "held", [0, 0]),
  row(backingOff, "steer", true, "answered", [0, 0, 1]),
  row(backingOff, "steer", false, "inserted", [0, 0]),
  row(backingOff, "followUp", true, "answered", [0, 0, 1]),
  row(backingOff, "followUp", false, "inserted", [0, 0]),
  row(backingOff, "nextTurn", true, "held", [0, 0]),
  row(backingOff, "nextTurn", false, "held", [0, 0]),
];

const cases = apis.flatMap((api) => rows.map((each) => ({ ...each, api, agentName: each.agent.name })));

describe("the moment of a push", () => {
  test.concurrent.for(cases)(
    "with $deliverAs and triggerTurn $triggerTurn when the agent is $agentName ($api)",
    async ({ api, agent, deliverAs, triggerTurn, end, requests }, { task }) => {
      await using cell = await world.cellAnywhere(api);
      const delivery = await agent.reach(cell, () => cell.push({ deliverAs, triggerTurn }));
      const now = await cell.until(delivery, end);
      await cell.idle();
      const label = `${deliverAs}, triggerTurn ${triggerTurn}`;
      note(task, { does: label, where: agent.name, api, end: endOf(now) });
      expect(endOf(await delivery.get())).toBe(end);
      expect(cell.carried).toEqual(requests);
      expect(await cell.entries(delivery.id)).toBe(end === "held" ? 0 : 1);
      if (end !== "answered") {
        await cell.session.promptAndWait("Go on.");
        expect(cell.carried).toEqual([...requests, 1]);
      }
      expect(attemptsOf(await delivery.answered)).toEqual(["delivered headers 200 confirmed"]);
      expect(await cell.entries(delivery.id)).toBe(1);
      cell.expectLawful();
      await cell.idle();
      cell.done();
    },
  );
});
