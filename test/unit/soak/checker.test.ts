import { describe, expect, test } from "vitest";
import { check } from "../../soak/checker.ts";
import type { History, ViolationKind } from "../../soak/history.ts";
import { answered, attempt, delivery, entry, history, pushed, request, sighting } from "./forged.ts";

function kinds(forged: History): ViolationKind[] {
  return [...new Set(check(forged).map(({ kind }) => kind))];
}

test("a push that all three sides agree on is in order", () => {
  expect(check(history())).toEqual([]);
});

test("a push that was cancelled before it was inserted, and occurs nowhere, is in order", () => {
  const cancelled = delivery(["accepted", "held", "cancelled"]);
  expect(check(history({ sightings: [], requests: [], entries: [] }, cancelled))).toEqual([]);
});

describe("wrong is", () => {
  test("a delivered whose request was refused", () => {
    expect(kinds(history({ requests: [request({ status: 400, outcome: "refused" })] }))).toContain("wrong");
  });

  test("a delivered without any request that has the push", () => {
    expect(kinds(history({ requests: [] }))).toEqual(["wrong"]);
  });

  test("a delivered whose request got no answer, though a later one did", () => {
    const requests = [
      request({ status: 400, outcome: "refused" }),
      request({ n: 2, receivedAt: 1_015, headersSentAt: 1_018 }),
    ];
    expect(kinds(history({ requests }))).toContain("wrong");
  });

  test("a delivered of an eager provider that relies on its start", () => {
    const final = { ...answered, attempts: [attempt({ evidence: "start" })] };
    const forged = history({ pushes: [{ ...pushed, api: "eager" }], sightings: [] }, final);
    expect(kinds(forged)).toEqual(["wrong"]);
  });

  test("an answered whose answer broke off", () => {
    expect(kinds(history({ requests: [request({ outcome: "reset" })] }))).toEqual(["wrong"]);
  });

  test("a failed attempt whose request was answered in full", () => {
    const parked = delivery(["accepted", "held", "inserted", "prepared", "parked"], {
      attempts: [attempt({ outcome: "failed" })],
    });
    expect(kinds(history({ sightings: [] }, parked))).toContain("wrong");
  });

  test("a status that is not the provider's", () => {
    const requests = [request({ status: 201 })];
    expect(kinds(history({ requests }))).toEqual(["wrong"]);
  });

  test("a state that none of its allowed predecessors precedes", () => {
    const final = delivery(["accepted", "prepared", "delivered", "answered"], { attempts: [attempt()] });
    expect(kinds(history({ sightings: [] }, final))).toContain("wrong");
  });

  test("a final state that changes", () => {
    const cancelled = delivery(["accepted", "cancelled"]);
    const forged = history({ sightings: [sighting(cancelled)] });
    expect(check(forged).map(({ message }) => message)).toContain("its end has changed");
  });

  test("a state that goes back after a daemon's death", () => {
    const held = delivery(["accepted", "held"]);
    const forged = history({
      sightings: [sighting(answered), sighting(held, { at: 1_100, askedAt: 1_090, life: 2 })],
    });
    expect(kinds(forged)).toContain("wrong");
  });

  test("another text after the push's marker", () => {
    expect(kinds(history({ requests: [request({ altered: [pushed.id] })] }))).toEqual(["wrong"]);
  });

  test("a second attempt after an unknown one that does not report it", () => {
    const final = {
      ...answered,
      attempts: [
        attempt({ requestId: "r0", preparedAt: 900, endedAt: 950, outcome: "unknown" as const }),
        attempt({ n: 2 }),
      ],
    };
    expect(kinds(history({ sightings: [] }, final))).toEqual(["wrong"]);
    expect(kinds(history({ sightings: [] }, { ...final, redelivered: true }))).toEqual([]);
  });
});

describe("lost is", () => {
  test("an accepted push that the daemon does not know", () => {
    expect(kinds({ ...history({ sightings: [] }), final: new Map() })).toEqual(["lost"]);
  });

  test("a push that is reported as inserted and is in no transcript", () => {
    expect(kinds(history({ entries: [] }))).toEqual(["lost"]);
  });

  test("an inserted push without an entry, unless pi died before it had written the session's file", () => {
    const deaths = [{ at: 1_040, session: "s0" }];
    expect(kinds(history({ entries: [], deaths }))).toEqual(["lost"]);
    expect(kinds(history({ entries: [], deaths: [{ ...deaths[0], at: 1_040, unwritten: ["s0"] }] }))).toEqual([]);
  });

  test("a cancelled push in the transcript", () => {
    const cancelled = delivery(["accepted", "held", "cancelled"]);
    expect(kinds(history({ sightings: [], requests: [], entries: [entry] }, cancelled))).toEqual(["lost"]);
  });

  test("a push that makes no progress", () => {
    const held = delivery(["accepted", "held"]);
    expect(kinds(history({ sightings: [], requests: [], entries: [] }, held))).toEqual(["lost"]);
  });

  test("a push that was reported as cancelled and is answered", () => {
    const claims = [{ deliveryId: pushed.id, state: "cancelled" as const, from: "delivery/cancel" }];
    expect(kinds(history({ claims }))).toEqual(["lost"]);
  });

  test("a refused push in the transcript", () => {
    expect(kinds({ ...history({ pushes: [{ ...pushed, answer: "refused" }] }), final: new Map() })).toEqual(["lost"]);
  });
});

describe("doubled is", () => {
  test("a push with two entries, on any branch", () => {
    const entries = [entry, { ...entry, entryId: "e2", onActiveBranch: false }];
    expect(kinds(history({ entries }))).toEqual(["doubled"]);
  });

  test("a push that occurs twice in one request", () => {
    expect(kinds(history({ requests: [request({ carried: { [pushed.id]: 2 } })] }))).toEqual(["doubled"]);
  });
});

test("pushes after reported damage may be lost, and never duplicated", () => {
  const lost = { ...history({ damages: [2_000] }), final: new Map() };
  expect(kinds(lost)).toEqual([]);
  expect(kinds({ ...lost, entries: [entry, { ...entry, entryId: "e2" }] })).toEqual(["doubled"]);
  expect(kinds({ ...lost, damages: [500] })).toEqual(["lost"]);
});

test("after the ends of the store and its log were cut, only steps that were not synced may be gone", () => {
  const told = delivery(["accepted", "held", "inserted"]);
  const final = delivery(["accepted", "inserted", "prepared", "delivered", "answered"], { attempts: [attempt()] });
  const cut = history({ sightings: [sighting(told)], cuts: [2_000] }, final);
  expect(kinds(cut)).toEqual([]);
  expect(kinds({ ...cut, cuts: [500] })).toEqual(["wrong"]);
  const synced = sighting(delivery(["accepted", "held", "inserted", "prepared", "parked"], { attempts: [attempt()] }));
  expect(kinds({ ...cut, sightings: [synced] })).toEqual(["wrong"]);
});

test("the provider's answer may be unknown only to a child that was killed", () => {
  const parked = delivery(["accepted", "held", "inserted", "prepared", "parked"], {
    attempts: [attempt({ outcome: "unknown" })],
    state: "dropped",
    history: delivery(["accepted", "inserted", "prepared", "dropped"]).history,
  });
  expect(kinds(history({ sightings: [] }, parked))).toEqual(["wrong"]);
  expect(kinds(history({ sightings: [], deaths: [{ at: 1_020, session: "s0" }] }, parked))).toEqual([]);
  expect(kinds(history({ sightings: [], deaths: [{ at: 1_020, session: "s1" }] }, parked))).toEqual(["wrong"]);
});
