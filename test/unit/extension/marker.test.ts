import { expect, test } from "vitest";
import { deliveryIdOf, isDeliveryId, markedDetails } from "../../../extension/delivery/marker.ts";

test("the identity is read back from messages and from entries", () => {
  const details = markedDetails({ deliveryId: "d1", details: { own: true } });
  expect(details).toEqual({ own: true, "pi-rpcd": { deliveryId: "d1" } });
  expect(deliveryIdOf({ role: "custom", details })).toBe("d1");
  expect(deliveryIdOf({ type: "custom_message", details })).toBe("d1");
});

test("a client cannot set another identity", () => {
  expect(markedDetails({ deliveryId: "d1", details: { "pi-rpcd": { deliveryId: "d2" } } })["pi-rpcd"]).toEqual({
    deliveryId: "d1",
  });
});

test.for([
  undefined,
  null,
  "custom",
  [],
  { role: "user", details: { "pi-rpcd": { deliveryId: "d1" } } },
  { role: "custom" },
  { role: "custom", details: "pi-rpcd" },
  { role: "custom", details: { "pi-rpcd": "d1" } },
  { role: "custom", details: { "pi-rpcd": { deliveryId: 7 } } },
  { role: "custom", details: { "pi-rpcd": { deliveryId: "" } } },
  { role: "custom", details: { "pi-rpcd": { deliveryId: "a b" } } },
  { role: "custom", details: { "pi-rpcd": { deliveryId: "x".repeat(129) } } },
  { role: "custom", details: { "pi-rpcd": { deliveryId: "_a" } } },
  { role: "custom", details: { "pi-rpcd": { deliveryId: "__proto__" } } },
])("%j has no identity", (message) => {
  expect(deliveryIdOf(message)).toBeUndefined();
});

test("ids have the wire's format", () => {
  expect(["a", "A-1._:", "x".repeat(128)].every(isDeliveryId)).toBe(true);
});
