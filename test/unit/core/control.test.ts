import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import { Control } from "../../../server/core/control.ts";

const ada = { clientId: "client-ada", name: "Ada" };
const bob = { clientId: "client-bob" };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function world(policy: "shared" | "exclusive" = "shared") {
  const told: unknown[] = [];
  const policies: string[] = [];
  const control = new Control({
    sessionId: "s",
    policy,
    onPolicy: (set) => policies.push(set),
    say: ({ controller }, change, by) => told.push([change, controller?.clientId, by?.clientId]),
    graceMs: 10_000,
  });
  const acquire = (by: typeof bob, more: Partial<Parameters<Control["acquire"]>[0]> = {}) =>
    control.acquire({ by, ttlMs: 60_000, takeOver: false, policy: undefined, ...more });
  const mayAct = (by: typeof bob | undefined): boolean => kindOf(() => control.check(by)) === undefined;
  return { control, told, policies, acquire, mayAct };
}

function kindOf(attempt: () => unknown): string | undefined {
  try {
    attempt();
    return undefined;
  } catch (error) {
    return (error as WireError).kind;
  }
}

describe("control of a session", () => {
  test("is shared at first: every client may act, whoever has the lease", () => {
    const { acquire, mayAct, control } = world();
    expect(control.state).toEqual({ policy: "shared" });
    acquire(ada);
    expect([ada, bob, undefined].map(mayAct)).toEqual([true, true, true]);
  });

  test("that is exclusive lets only the controller act, and no client while there is none", () => {
    const { acquire, mayAct, policies, control } = world();
    acquire(ada, { policy: "exclusive" });
    expect([ada, bob, undefined].map(mayAct)).toEqual([true, false, false]);
    expect(policies).toEqual(["exclusive"]);
    control.release(ada, undefined);
    expect([ada, bob, undefined].map(mayAct)).toEqual([false, false, false]);
    expect(control.state).toEqual({ policy: "exclusive" });
  });

  test("moves to another client only by a take-over or a hand-over", () => {
    const { acquire, control, told } = world();
    acquire(ada);
    expect(kindOf(() => acquire(bob))).toBe("not_controller");
    expect(kindOf(() => control.release(bob, undefined))).toBe("not_controller");
    acquire(bob, { takeOver: true });
    expect(kindOf(() => control.release(ada, undefined))).toBe("not_controller");
    expect(control.release(bob, ada)).toMatchObject({ controller: ada });
    expect(told).toEqual([
      ["acquired", "client-ada", "client-ada"],
      ["taken_over", "client-bob", "client-bob"],
      ["handed_over", "client-ada", "client-bob"],
    ]);
  });

  test("names the controller in its refusal", () => {
    const { acquire, control } = world("exclusive");
    acquire(ada);
    const refused = vi.fn(() => control.check(bob));
    expect(refused).toThrow(/Ada \(client-ada\) controls it/);
    expect(kindOf(refused)).toBe("not_controller");
  });

  test("ends when its time is over, unless it is renewed, independently of the wall clock", () => {
    const { acquire, control, told } = world("exclusive");
    acquire(ada, { ttlMs: 1_000 });
    vi.advanceTimersByTime(900);
    acquire(ada, { ttlMs: 1_000 });
    vi.setSystemTime(Date.now() + 365 * 24 * 3_600_000);
    vi.advanceTimersByTime(900);
    expect(control.state.controller).toEqual(ada);
    vi.advanceTimersByTime(100);
    expect(control.state.controller).toBeUndefined();
    expect(told).toEqual([
      ["acquired", "client-ada", "client-ada"],
      ["expired", undefined, undefined],
    ]);
  });

  test("outlives its client's connections by a grace period, and stays if the client returns", () => {
    const { acquire, control, told } = world();
    acquire(ada);
    control.left("client-ada");
    vi.advanceTimersByTime(9_999);
    control.returned("client-ada");
    vi.advanceTimersByTime(20_000);
    expect(control.state.controller).toEqual(ada);
    control.left("client-bob");
    control.left("client-ada");
    vi.advanceTimersByTime(10_000);
    expect(told.at(-1)).toEqual(["disconnected", undefined, undefined]);
  });

  test("of a closed session reports nothing more", () => {
    const { acquire, control, told } = world();
    acquire(ada);
    control.close();
    vi.advanceTimersByTime(100_000);
    expect(told).toHaveLength(1);
  });
});
