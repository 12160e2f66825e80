import { describe, expect, it } from "vitest";
import { KnownDelivery, supersedes, verdict } from "../../../client/known-delivery.ts";
import type { Delivery, DeliveryState, WaitUntil } from "../../../protocol/delivery.ts";
import { delivery } from "./fixtures.ts";

const reason = (code: "unanswered_error" | "run_failed"): Pick<Delivery, "reason"> => ({
  reason: { code, message: "…" },
});

describe("verdict", () => {
  const rows: readonly [readonly DeliveryState[], WaitUntil, string, Partial<Delivery>?][] = [
    [["accepted"], "inserted", "open"],
    [["accepted", "held"], "inserted", "open"],
    [["accepted", "held", "inserted"], "inserted", "reached"],
    [["accepted", "inserted", "prepared"], "inserted", "reached"],
    [["accepted", "inserted", "prepared"], "delivered", "open"],
    [["accepted", "inserted", "prepared", "delivered"], "delivered", "reached"],
    [["accepted", "inserted", "prepared", "delivered"], "answered", "open"],
    [["accepted", "inserted", "prepared", "delivered"], "answered", "unmet", reason("unanswered_error")],
    [["accepted", "inserted", "prepared", "delivered"], "delivered", "reached", reason("unanswered_error")],
    [["accepted", "inserted", "prepared", "delivered", "answered"], "answered", "reached"],
    [["accepted", "held", "parked"], "inserted", "unmet"],
    // It was inserted once, and `.inserted` read at that time has resolved.
    [["accepted", "inserted", "prepared", "parked"], "inserted", "reached", reason("run_failed")],
    [["accepted", "inserted", "prepared", "parked"], "delivered", "unmet", reason("run_failed")],
    [["accepted", "inserted", "prepared", "parked", "prepared"], "delivered", "open"],
    [["accepted", "dropped"], "inserted", "unmet"],
    [["accepted", "cancelled"], "delivered", "unmet"],
    [["accepted", "expired"], "delivered", "unmet"],
    [["accepted", "failed"], "delivered", "unmet"],
    [["accepted", "inserted", "unknown"], "delivered", "unmet"],
  ];
  it.each(rows)("of %j for %s is %s", (states, until, expected, changes) => {
    expect(verdict(delivery("d", states, changes), until)).toBe(expected);
  });
});

describe("supersedes", () => {
  const early = delivery("d", ["accepted", "held"]);
  const late = delivery("d", ["accepted", "held", "inserted"]);
  it("goes by the history, even if the clock was set back", () => {
    expect(supersedes(late, { ...early, updatedAt: 1_000 })).toBe(true);
    expect(supersedes({ ...early, updatedAt: 1_000 }, late)).toBe(false);
  });
  it("goes by the time, and then by arrival, between histories of equal length", () => {
    expect(supersedes({ ...early, updatedAt: early.updatedAt + 1 }, early)).toBe(true);
    expect(supersedes({ ...early, updatedAt: early.updatedAt - 1 }, early)).toBe(false);
    expect(supersedes(early, early)).toBe(true);
  });
  it("never takes back a final state", () => {
    const delivered = delivery("d", ["accepted", "inserted", "prepared", "delivered"]);
    const unanswered = { ...delivered, ...reason("unanswered_error"), updatedAt: 0 };
    expect(supersedes(unanswered, delivered)).toBe(true);
    expect(supersedes(delivered, unanswered)).toBe(false);
  });
});

describe("KnownDelivery", () => {
  it("keeps the newest record and notifies its watchers only of changes", () => {
    const known = new KnownDelivery();
    const told: string[] = [];
    const unwatch = known.watch(({ state }) => told.push(state));
    known.learn(delivery("d", ["accepted", "held"]));
    known.learn(delivery("d", ["accepted"]));
    unwatch();
    known.learn(delivery("d", ["accepted", "held", "inserted"]));
    expect(told).toEqual(["held"]);
    expect(known.current?.state).toBe("inserted");
  });
});
