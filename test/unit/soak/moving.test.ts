import { expect, test } from "vitest";
import type { Delivery } from "../../../protocol/delivery.ts";
import { isMoving } from "../../soak/actor.ts";

const push = (state: Delivery["state"], deliverAs: Delivery["deliverAs"], former: Delivery["state"] = "accepted") =>
  ({ state, deliverAs, triggerTurn: true, history: [{ state: former }, { state }] }) as Delivery;

test("a push for the next turn stays without a pi, and every other accepted one makes progress", () => {
  for (const session of ["hibernated", "crashed"] as const) {
    expect(isMoving(push("accepted", "nextTurn"), session)).toBe(false);
    expect(isMoving(push("accepted", "steer"), session)).toBe(true);
  }
  expect(isMoving(push("accepted", "nextTurn"), "idle")).toBe(true);
  expect(isMoving(push("held", "nextTurn"), "idle")).toBe(false);
  expect(isMoving(push("held", "followUp"), "idle")).toBe(true);
  expect(isMoving(push("delivered", "steer"), "idle")).toBe(false);
});

test("a push in the transcript wants a run, unless a run has left it and no client has sent it again", () => {
  expect(isMoving(push("inserted", "steer", "held"), "idle")).toBe(true);
  const left = push("inserted", "steer", "parked");
  expect(isMoving(left, "idle")).toBe(false);
  const resent = { ...left, history: [{ state: "parked" }, { state: "inserted", by: { clientId: "c" } }] } as Delivery;
  expect(isMoving(resent, "idle")).toBe(true);
  expect(isMoving(push("held", "steer", "parked"), "idle")).toBe(true);
});
