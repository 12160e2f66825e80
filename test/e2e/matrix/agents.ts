import type { DeliveryHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold, status } from "../../../provider/reply.ts";
import type { Cell } from "./matrix-stage.ts";

type WhenPlaced = (delivery: DeliveryHandle) => Promise<void>;

/** The agent's activity when the push arrives. */
export interface AgentState {
  readonly name: string;
  /** The number of the conversation's requests before the one that carries the push. */
  readonly requestsBefore: number;
  /**
   * Brings the agent into this state, pushes, runs `whenPlaced` when the push waits at its place, and lets the agent
   * continue.
   */
  readonly reach: (cell: Cell, push: () => DeliveryHandle, whenPlaced?: WhenPlaced) => Promise<DeliveryHandle>;
}

export const idle: AgentState = {
  name: "idle",
  requestsBefore: 0,
  reach: async (_cell, push) => push(),
};

export const streaming: AgentState = {
  name: "streaming",
  requestsBefore: 1,
  reach: async (cell, push, whenPlaced) => {
    const gate = new Gate();
    cell.add(answer("I thi", hold(gate), "nk."));
    await cell.session.prompt("Begin.");
    await gate.reached;
    const delivery = push();
    await cell.until(delivery, "held");
    await whenPlaced?.(delivery);
    gate.open();
    return delivery;
  },
};

export const inTool: AgentState = {
  name: "in a tool call",
  requestsBefore: 1,
  reach: async (cell, push, whenPlaced) => {
    const barrier = cell.world.barrier();
    cell.add(answer("I run it.", call("bash", { command: barrier.command })));
    await cell.session.prompt("Run it.");
    await barrier.reached;
    const delivery = push();
    await cell.until(delivery, "held");
    await whenPlaced?.(delivery);
    barrier.open();
    return delivery;
  },
};

export const compacting: AgentState = {
  name: "compacting",
  requestsBefore: 2,
  reach: async (cell, push, whenPlaced) => {
    const gate = new Gate();
    await cell.addHistory();
    cell.world.replies.addSummary(cell.model, delayed(hold(gate), answer("A summary.")));
    const compaction = cell.session.command({ type: "compact" });
    // `whenPlaced` may end the compaction.
    const over = whenPlaced === undefined ? compaction : compaction.catch(() => {});
    await gate.reached;
    const delivery = push();
    await cell.until(delivery, "held");
    await whenPlaced?.(delivery);
    gate.open();
    await over;
    return delivery;
  },
};

export const backingOff: AgentState = {
  name: "in retry back-off",
  requestsBefore: 2,
  reach: async (cell, push, whenPlaced) => {
    const gate = new Gate();
    const { seen: backOff } = await cell.event("auto_retry_start");
    cell.add(status(529), delayed(hold(gate), answer("At last.")));
    await cell.session.prompt("Begin.");
    await backOff;
    const delivery = push();
    await cell.until(delivery, "held");
    await whenPlaced?.(delivery);
    gate.open();
    return delivery;
  },
};

export const agentStates: readonly AgentState[] = [idle, streaming, inTool, compacting, backingOff];
