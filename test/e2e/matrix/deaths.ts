import type { DeliveryHandle, PushParams } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold, status } from "../../../provider/reply.ts";
import type { Barrier } from "./barriers.ts";
import type { Cell } from "./matrix-stage.ts";

/** Where a push is when a process dies, and the required result. */
export interface Death {
  readonly name: string;
  /** Brings the push there. */
  readonly reach: (cell: Cell) => Promise<DeliveryHandle>;
  /** Where it is in the next process when it stops moving by itself. */
  readonly end: string;
  readonly attempts: readonly string[];
  /** How many requests so far have carried it. */
  readonly carried: readonly number[];
  readonly entries: 0 | 1;
  /** Whether a later request says that the model may have seen it before. */
  readonly redelivered?: true;
}

const got = "delivered headers 200 confirmed";

/** A push that arrives during a tool call that never ends. */
async function heldInTool(cell: Cell, params: Partial<PushParams> = {}): Promise<DeliveryHandle> {
  const barrier = cell.world.barrier();
  cell.add(answer("I run it.", call("bash", { command: barrier.command })));
  await cell.session.prompt("Run it.");
  await barrier.reached;
  const delivery = cell.push(params);
  await cell.until(delivery, "held");
  return delivery;
}

export const deaths: readonly Death[] = [
  {
    name: "held for the end of a tool call",
    reach: heldInTool,
    end: "answered",
    attempts: [got],
    carried: [0, 1],
    entries: 1,
  },
  {
    name: "held for the next prompt",
    reach: async (cell) => {
      const delivery = cell.push({ deliverAs: "nextTurn" });
      await cell.until(delivery, "held");
      return delivery;
    },
    end: "held",
    attempts: [],
    carried: [],
    entries: 0,
  },
  {
    name: "parked by an abort, and held",
    reach: async (cell) => {
      const delivery = await heldInTool(cell);
      await cell.session.abort();
      await cell.until(delivery, "parked");
      return delivery;
    },
    end: "parked abort",
    attempts: [],
    carried: [0],
    entries: 0,
  },
  {
    name: "in the transcript, without a run that it wants",
    reach: async (cell) => {
      const delivery = cell.push({ triggerTurn: false });
      await cell.until(delivery, "inserted");
      return delivery;
    },
    end: "parked interrupted",
    attempts: [],
    carried: [],
    entries: 1,
  },
  {
    name: "in the transcript, before its request is made",
    reach: async (cell) => {
      const barrier: Barrier = cell.world.barrier();
      const delivery = cell.push({ content: `${cell.text} WAIT-context ${barrier.url}` });
      await barrier.reached;
      // The next pi waits at no barrier.
      cell.afterDeath(() => barrier.open());
      return delivery;
    },
    end: "answered",
    attempts: [got],
    carried: [1],
    entries: 1,
  },
  {
    name: "in a request without headers yet",
    reach: async (cell) => {
      const gate = new Gate();
      cell.add(delayed(hold(gate), answer("Never read.")));
      const delivery = cell.push();
      await gate.reached;
      await cell.until(delivery, "prepared");
      return delivery;
    },
    end: "parked interrupted",
    attempts: ["unknown unchecked"],
    carried: [1],
    entries: 1,
    redelivered: true,
  },
  {
    name: "in the middle of its answer",
    reach: async (cell) => {
      cell.add(answer("Unders", hold(new Gate())));
      const delivery = cell.push();
      await delivery.delivered;
      return delivery;
    },
    end: "delivered interrupted",
    attempts: [got],
    carried: [1],
    entries: 1,
  },
  {
    name: "refused for good",
    reach: async (cell) => {
      cell.add(status(400));
      const delivery = cell.push();
      await cell.until(delivery, "parked");
      return delivery;
    },
    end: "parked run_failed",
    attempts: ["failed 400 confirmed"],
    carried: [1],
    entries: 1,
  },
  {
    name: "answered",
    reach: async (cell) => {
      const delivery = cell.push();
      await delivery.answered;
      return delivery;
    },
    end: "answered",
    attempts: [got],
    carried: [1],
    entries: 1,
  },
];
