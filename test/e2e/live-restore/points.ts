import type { DeliveryHandle, PushParams } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold, status } from "../../../provider/reply.ts";
import type { Cell } from "../matrix/matrix-stage.ts";

/** Where a push is when the daemon is killed, and what must become of it with the same pi. */
export interface Point {
  readonly name: string;
  /** Brings the push there. `release`: what pi waited for, done when the next daemon listens. */
  readonly reach: (cell: Cell) => Promise<{ readonly delivery: DeliveryHandle; readonly release?: () => void }>;
  /** Whether pi answers nobody until it is released. */
  readonly isSuspended?: true;
  /** Where it is when it stops moving by itself. */
  readonly end: string;
  readonly attempts: readonly string[];
  /** How often each request so far has carried it. */
  readonly carried: readonly number[];
  readonly entries: 0 | 1;
}

const got = "delivered headers 200 confirmed";

/** A push that arrives during a tool call, which ends when the barrier is opened. */
async function heldInTool(cell: Cell, params: Partial<PushParams> = {}): ReturnType<Point["reach"]> {
  const barrier = cell.world.barrier();
  cell.add(answer("I run it.", call("bash", { command: barrier.command })));
  await cell.session.prompt("Run it.");
  await barrier.reached;
  const delivery = cell.push(params);
  await cell.until(delivery, "held");
  return { delivery, release: () => barrier.open() };
}

export const points: readonly Point[] = [
  {
    name: "accepted, and pi is suspended",
    isSuspended: true,
    reach: async (cell) => {
      const { pid } = await cell.session.get();
      process.kill(pid as number, "SIGSTOP");
      const delivery = cell.push();
      await delivery.accepted;
      return { delivery, release: () => process.kill(pid as number, "SIGCONT") };
    },
    end: "answered",
    attempts: [got],
    carried: [1],
    entries: 1,
  },
  { name: "held in a tool call", reach: heldInTool, end: "answered", attempts: [got], carried: [0, 1], entries: 1 },
  {
    name: "held for the end of the run",
    reach: (cell) => heldInTool(cell, { deliverAs: "followUp" }),
    end: "answered",
    attempts: [got],
    carried: [0, 0, 1],
    entries: 1,
  },
  {
    name: "held for the next prompt",
    reach: async (cell) => {
      const delivery = cell.push({ deliverAs: "nextTurn" });
      await cell.until(delivery, "held");
      return { delivery };
    },
    end: "held",
    attempts: [],
    carried: [],
    entries: 0,
  },
  {
    name: "parked by an abort, and held",
    reach: async (cell) => {
      const { delivery } = await heldInTool(cell);
      await cell.session.abort();
      await cell.until(delivery, "parked");
      return { delivery };
    },
    end: "parked abort",
    attempts: [],
    carried: [0],
    entries: 0,
  },
  {
    name: "inserted, without a run",
    reach: async (cell) => {
      const delivery = cell.push({ triggerTurn: false });
      await cell.until(delivery, "inserted");
      return { delivery };
    },
    end: "inserted",
    attempts: [],
    carried: [],
    entries: 1,
  },
  {
    name: "inserted, before its request is made",
    reach: async (cell) => {
      const barrier = cell.world.barrier();
      const delivery = cell.push({ content: `${cell.text} WAIT-context ${barrier.url}` });
      await barrier.reached;
      return { delivery, release: () => barrier.open() };
    },
    end: "answered",
    attempts: [got],
    carried: [1],
    entries: 1,
  },
  {
    name: "prepared, in a request without headers yet",
    reach: async (cell) => {
      const gate = new Gate();
      cell.add(delayed(hold(gate), answer("Good.")));
      const delivery = cell.push();
      await gate.reached;
      await cell.until(delivery, "prepared");
      return { delivery, release: () => gate.open() };
    },
    end: "answered",
    attempts: [got],
    carried: [1],
    entries: 1,
  },
  {
    name: "prepared, and its request is sent again",
    reach: async (cell) => {
      const gate = new Gate();
      cell.add(status(529), delayed(hold(gate), answer("Good.")));
      const delivery = cell.push();
      await gate.reached;
      await cell.until(delivery, "prepared");
      return { delivery, release: () => gate.open() };
    },
    end: "answered",
    attempts: ["failed 529 confirmed", got],
    carried: [1, 1],
    entries: 1,
  },
  {
    name: "delivered, in the middle of its answer",
    reach: async (cell) => {
      const gate = new Gate();
      cell.add(answer("Unders", hold(gate), "tood."));
      const delivery = cell.push();
      await delivery.delivered;
      return { delivery, release: () => gate.open() };
    },
    end: "answered",
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
      return { delivery };
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
      return { delivery };
    },
    end: "answered",
    attempts: [got],
    carried: [1],
    entries: 1,
  },
];
