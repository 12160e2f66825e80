import type { Attempt, Delivery, DeliveryState } from "../../../protocol/delivery.ts";
import type { EntryFact, History, PushFact, RequestFact, Sighting } from "../../soak/history.ts";

// A history without faults, into which the tests put faults.

export const pushed: PushFact = {
  id: "push-1",
  session: "s0",
  text: "[[push-1]] hello",
  api: "openai",
  answer: "accepted",
};

export function attempt(fields: Partial<Attempt> = {}): Attempt {
  return {
    requestId: "r1",
    n: 1,
    preparedAt: 1_000,
    payload: "confirmed",
    outcome: "delivered",
    endedAt: 1_020,
    status: 200,
    evidence: "headers",
    ...fields,
  };
}

export function delivery(states: readonly DeliveryState[], fields: Partial<Delivery> = {}): Delivery {
  const requestIdOf = (state: DeliveryState): object =>
    ["prepared", "delivered", "answered"].includes(state) ? { requestId: "r1" } : {};
  return {
    deliveryId: pushed.id,
    sessionId: "session",
    state: states.at(-1) ?? "accepted",
    customType: "soak",
    deliverAs: "steer",
    triggerTurn: true,
    attempts: [],
    history: states.map((state, index) => ({ state, at: 990 + index, ...requestIdOf(state) })),
    createdAt: 990,
    updatedAt: 1_020,
    ...fields,
  };
}

export const answered = delivery(["accepted", "held", "inserted", "prepared", "delivered", "answered"], {
  attempts: [attempt()],
});

export function request(fields: Partial<RequestFact> = {}): RequestFact {
  return {
    n: 1,
    session: "s0",
    receivedAt: 1_005,
    carried: { [pushed.id]: 1 },
    altered: [],
    violations: [],
    status: 200,
    headersSentAt: 1_010,
    endedAt: 1_030,
    outcome: "answered",
    ...fields,
  };
}

export const entry: EntryFact = { deliveryId: pushed.id, file: "f", entryId: "e1", onActiveBranch: true };

export function sighting(record: Delivery, fields: Partial<Sighting> = {}): Sighting {
  return { at: 1_050, from: "client 1", life: 1, delivery: record, ...fields };
}

export function history(fields: Partial<History> = {}, final: Delivery | undefined = answered): History {
  return {
    pushes: [pushed],
    sightings: [sighting(answered)],
    claims: [],
    requests: [request()],
    entries: [entry],
    deaths: [],
    damages: [],
    cuts: [],
    final: new Map([[pushed.id, final]]),
    ...fields,
  };
}
