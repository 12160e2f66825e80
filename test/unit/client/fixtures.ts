import type { DaemonInfo } from "../../../protocol/daemon.ts";
import type { Delivery, DeliveryState, HistoryStep } from "../../../protocol/delivery.ts";
import type { Envelope } from "../../../protocol/event.ts";
import type { SessionInfo } from "../../../protocol/session.ts";

export const sessionId = "s-1";

export function daemonInfo(changes: Partial<DaemonInfo> = {}): DaemonInfo {
  return {
    pid: 1,
    version: "0.1.0",
    protocol: 1,
    startedAt: 1,
    stateDir: "/state",
    pi: {
      path: "/pi",
      version: "1.5.2",
      source: "bundled",
      capabilities: { promptDisposition: true, settledAborted: true },
    },
    sessions: {},
    connections: 1,
    warmChildren: 0,
    residentBytes: 1,
    capabilities: ["admin"],
    ...changes,
  };
}

export function sessionInfo(changes: Partial<SessionInfo> = {}): SessionInfo {
  return {
    sessionId,
    state: "idle",
    cwd: "/work",
    file: "/sessions/s-1.jsonl",
    generation: 1,
    projectTrust: "not_approved",
    epoch: "e",
    idleAfterMs: 900_000,
    cursor: 0,
    pendingDeliveries: 0,
    pendingDialogs: [],
    lostPrompts: [],
    createdAt: 1,
    updatedAt: 1,
    ...changes,
  };
}

export function envelope(seq: number, event: Envelope["event"] & Record<string, unknown> = { type: "tick" }): Envelope {
  return { sessionId, seq, at: seq, generation: 1, event };
}

/** A delivery that went through these states; the last is its current one. */
export function delivery(
  deliveryId: string,
  states: readonly DeliveryState[],
  changes: Partial<Delivery> = {},
): Delivery {
  const history = states.map((state, index): HistoryStep => ({ state, at: index + 1 }));
  return {
    deliveryId,
    sessionId,
    state: states.at(-1) ?? "accepted",
    customType: "build",
    deliverAs: "steer",
    triggerTurn: true,
    attempts: [],
    history,
    createdAt: 1,
    updatedAt: states.length,
    ...changes,
  };
}
