import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DaemonNotRunningError, ProtocolMismatchError, UnauthorizedError } from "../../../client/local-errors.ts";
import { isFinal, nextTry, type ReconnectPolicy, reconnectPolicy } from "../../../client/reconnect-policy.ts";
import { WireError } from "../../../protocol/errors.ts";

const policy = reconnectPolicy() as ReconnectPolicy;

function delays(changes: Partial<ReconnectPolicy>, random: number): readonly number[] {
  return [1, 2, 3, 4, 5, 6, 7, 8, 9].map((attempt) => {
    const next = nextTry({ ...policy, ...changes }, { attempt, elapsedMs: 0, random });
    return next.kind === "after" ? next.delayMs : -1;
  });
}

describe("the delay before an attempt", () => {
  it("doubles up to its limit, and half of it is random", () => {
    const longest = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000];
    expect(delays({}, 0)).toEqual(longest);
    expect(delays({}, 1)).toEqual(longest.map((ms) => ms / 2));
    expect(delays({ jitter: 0 }, 1)).toEqual(longest);
    expect(delays({ firstDelayMs: 0 }, 0)).toEqual(longest.map(() => 0));
  });

  it("is finite, never negative and never above the limit, however long the outage", () => {
    const outage = fc.record({
      attempt: fc.integer({ min: 1, max: 100_000 }),
      elapsedMs: fc.nat(400_000),
      random: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    const property = fc.property(outage, ({ attempt, elapsedMs, random }) => {
      const next = nextTry(policy, { attempt, elapsedMs, random });
      expect(next.kind).toBe(elapsedMs >= policy.giveUpAfterMs ? "give_up" : "after");
      if (next.kind === "give_up") return;
      expect(next.delayMs).toBeGreaterThanOrEqual(0);
      expect(next.delayMs).toBeLessThanOrEqual(Math.min(policy.maxDelayMs, policy.giveUpAfterMs - elapsedMs));
    });
    fc.assert(property);
  });

  it("never ends with giveUpAfterMs: Infinity", () => {
    const endless = reconnectPolicy({ giveUpAfterMs: Number.POSITIVE_INFINITY }) as ReconnectPolicy;
    expect(nextTry(endless, { attempt: 1_000, elapsedMs: 1e12, random: 0 })).toEqual({
      kind: "after",
      delayMs: 10_000,
    });
  });
});

describe("the options", () => {
  it("have defaults, and can switch it off", () => {
    expect(reconnectPolicy()).toEqual(reconnectPolicy(true));
    expect(reconnectPolicy({ firstDelayMs: 7 })).toEqual({ ...policy, firstDelayMs: 7 });
    expect(reconnectPolicy(false)).toBeUndefined();
  });

  it.each([{ firstDelayMs: -1 }, { maxDelayMs: Number.NaN }, { jitter: 1.5 }, { giveUpAfterMs: -1 }])(
    "are refused when they are %j",
    (options) => {
      expect(() => reconnectPolicy(options)).toThrow(`reconnect.${Object.keys(options)[0]} must not be`);
    },
  );
});

it("gives up immediately on an error that no further attempt can fix", () => {
  const mismatch = new ProtocolMismatchError({ client: 1, daemon: 2, daemonVersion: "2.0.0" });
  const final = [
    new UnauthorizedError("here", true),
    mismatch,
    new TypeError("no URL"),
    new WireError("forbidden", ""),
  ];
  expect(final.map(isFinal)).toEqual([true, true, true, true]);
  const passing = [new DaemonNotRunningError("missing", ""), new WireError("shutting_down", ""), new Error("reset"), 7];
  expect(passing.map(isFinal)).toEqual([false, false, false, false]);
});
