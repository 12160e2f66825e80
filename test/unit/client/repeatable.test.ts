import { describe, expect, it } from "vitest";
import { repeatable } from "../../../client/repeatable.ts";
import { isReading } from "../../../protocol/method-row.ts";
import type { MethodName } from "../../../protocol/methods.ts";
import { paramNames as propertiesOf, rows } from "../../helpers/policies.ts";

const params = { sessionId: "s", deliveryId: "d" };

describe("a call whose answer was lost", () => {
  it("is repeated as its method's row says", () => {
    for (const [name, { retry, key = "idempotencyKey" }] of rows) {
      const own = { ...params, [key]: "mine" };
      expect([name, repeatable(name, own, () => "k")]).toEqual([
        name,
        { params: own, repeat: retry === "never" ? "never" : "always" },
      ]);
    }
  });

  it("is repeated if its method only observes, unless its effect belongs to one connection", () => {
    const observing = rows.filter(([, row]) => isReading(row)).map(([name]) => name);
    const again = observing.filter((name) => repeatable(name, params, () => "k").repeat === "always");
    expect(observing.filter((name) => !again.includes(name))).toEqual([
      "daemon/subscribe",
      "daemon/unsubscribe",
      "session/subscribe",
      "session/unsubscribe",
      "daemon/hello",
    ]);
  });

  it("is repeated if its method takes an idempotency key, and gets one if it has none", () => {
    const keyed = rows.filter(([, row]) => propertiesOf(row).includes("idempotencyKey")).map(([name]) => name);
    expect(keyed).toContain("session/prompt");
    for (const name of keyed) {
      expect(repeatable(name, params, () => "k")).toEqual({
        params: { ...params, idempotencyKey: "k" },
        repeat: "always",
      });
      const own = { ...params, idempotencyKey: "mine" };
      expect(repeatable(name, own, () => "k")).toEqual({ params: own, repeat: "always" });
    }
  });

  it("is repeated if it is known by its id or opens a session, and never if it changes something unknown", () => {
    const changing = rows.filter(([, row]) => !isReading(row) && !propertiesOf(row).includes("idempotencyKey"));
    const again = changing.filter(([name]) => repeatable(name, params, () => "k").repeat === "always");
    expect(again.map(([name]) => name)).toEqual(["session/open", "delivery/push", "delivery/cancel"]);
    expect(repeatable("delivery/push", { sessionId: "s" }, () => "k").repeat).toBe("never");
    const others = changing.filter((row) => !again.includes(row));
    for (const [name] of others) expect(repeatable(name, params, () => "k")).toEqual({ params, repeat: "never" });
  });

  it("of a method that only a newer daemon knows is not repeated", () => {
    expect(repeatable("workspace/ask" as MethodName, null, () => "k")).toEqual({ params: null, repeat: "never" });
  });
});
