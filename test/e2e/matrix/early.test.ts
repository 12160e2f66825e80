import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DeliveryHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, hang, hold, reset, status } from "../../../provider/reply.ts";
import type { Source } from "../../../provider/script.ts";
import { type AgentState, backingOff, compacting, idle, streaming } from "./agents.ts";
import { attemptsOf, type Cell, endOf, MatrixStage, note } from "./matrix-stage.ts";

// An extension's provider that says `start` before its request is answered and calls none of pi's hooks: only the first
// content of an answer is evidence that it has the push.

let world: MatrixStage;
beforeAll(async () => {
  world = await MatrixStage.open({
    extensions: ["soak-pi"],
    env: ({ baseUrls }) => ({ SOAK_EAGER_URL: `${baseUrls.openai}/chat/completions` }),
    settings: {
      retry: { enabled: true, maxRetries: 3, baseDelayMs: 60, maxAgentDelayMs: 60, provider: { maxRetries: 0 } },
    },
  });
});
afterAll(async () => await world[Symbol.asyncDispose]());

interface Row {
  readonly does: string;
  readonly make: () => {
    readonly replies: readonly Source[];
    readonly act?: (cell: Cell, delivery: DeliveryHandle) => Promise<void>;
  };
  readonly end: string;
  readonly attempts: readonly string[];
}

const got = "delivered content unchecked";

const rows: readonly Row[] = [
  { does: "start, then 200", make: () => ({ replies: [answer("Good.")] }), end: "answered", attempts: [got] },
  {
    does: "start, then 400",
    make: () => ({ replies: [status(400)] }),
    end: "parked run_failed",
    attempts: ["failed 400 unchecked"],
  },
  {
    does: "start, then a reset",
    make: () => ({ replies: [reset(), answer("Good.")] }),
    end: "answered",
    attempts: ["failed unchecked", got],
  },
  {
    does: "start, then 529, then 200",
    make: () => ({ replies: [status(529), answer("Good.")] }),
    end: "answered",
    attempts: ["failed 529 unchecked", got],
  },
  {
    does: "start, hangs before the headers, then abort",
    make: () => {
      const gate = new Gate();
      return {
        replies: [delayed(hold(gate), hang())],
        act: async (cell) => {
          await gate.reached;
          await cell.session.abort();
        },
      };
    },
    end: "parked abort",
    attempts: ["aborted unchecked"],
  },
  {
    // Headers alone are not reported.
    does: "start, hangs after the headers, then abort",
    make: () => {
      const gate = new Gate();
      return {
        replies: [answer(hold(gate), "Never.")],
        act: async (cell) => {
          await gate.reached;
          await cell.session.abort();
        },
      };
    },
    end: "parked abort",
    attempts: ["aborted unchecked"],
  },
];

const agents: readonly AgentState[] = [idle, streaming, compacting, backingOff];
const cases = rows.flatMap((row) => agents.map((agent) => ({ ...row, agent, where: agent.name })));

describe("a push to a provider that says start too early", () => {
  test.concurrent.for(cases)(
    "ends correctly when the agent is $where and the provider does: $does",
    async (row, { task }) => {
      const { agent, does, make, end, attempts } = row;
      await using cell = await world.cellAnywhere("eager");
      const { replies, act } = make();
      const delivery = await agent.reach(cell, () => {
        cell.add(...replies);
        return cell.push();
      });
      await act?.(cell, delivery);
      const now = await cell.rest(delivery);
      await cell.idle();
      note(task, { does, where: agent.name, api: "eager", end: endOf(now) });
      expect(endOf(now)).toBe(end);
      expect(attemptsOf(now)).toEqual(attempts);
      expect(cell.carried.slice(agent.requestsBefore)).toEqual(attempts.map(() => 1));
      expect(await cell.entries(delivery.id)).toBe(1);
      if (now.state === "parked") {
        await cell.session.promptAndWait("Go on.");
        expect(attemptsOf(await delivery.answered)).toEqual([...attempts, got]);
        expect(cell.carried.at(-1)).toBe(1);
        expect(await cell.entries(delivery.id)).toBe(1);
      }
      cell.expectLawful();
      await cell.idle();
      cell.done();
    },
  );
});
