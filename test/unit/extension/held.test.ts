import { expect, test } from "vitest";
import { type HeldItem, HeldList } from "../../../extension/delivery/held.ts";
import { heldPush } from "./pushes.ts";

function heldList(...ids: readonly string[]): HeldList {
  const held = new HeldList(new Map());
  for (const id of ids) held.add(heldPush(id));
  return held;
}

test("keeps the order of arrival through every change", () => {
  const held = heldList("d1", "d2", "d3");
  held.offer(["d1"], "draft");
  held.park(["d2"]);
  held.takeBack("d1");
  held.add(heldPush("d1", { content: "Another." }));
  expect(held.ids()).toEqual(["d1", "d2", "d3"]);
  expect(held.items()[0]?.push.content).toBe("Content of d1.");
});

test("gives up only pushes that pi was not given", () => {
  const held = heldList("d1", "d2");
  held.offer(["d1"], "run");
  expect(held.release("d1")).toBe("pending");
  expect(held.release("d2")).toBe("released");
  expect(held.release("d2")).toBe("unknown");
  expect(held.takeReleased()).toEqual([]);
  held.takeBack("d1");
  expect(held.takeReleased()).toEqual(["d1"]);
  expect(held.ids()).toEqual([]);
});

test("counts the runs that never started", () => {
  const held = heldList("d1");
  held.takeBack("d1");
  held.offer(["d1"], "draft");
  held.takeBack("d1");
  expect(held.items()[0]?.lostStarts).toBe(0);
  held.offer(["d1"], "run");
  expect([...held.offered("draft")]).toEqual([]);
  expect([...held.offered("draft", "run")]).toEqual(["d1"]);
  held.takeBack("d1");
  expect(held.items()[0]).toMatchObject({ lostStarts: 1, custody: { kind: "waiting" } });
});

test("a list created again over the same map continues", () => {
  const items = new Map<string, HeldItem>();
  new HeldList(items).add(heldPush("d1"));
  expect(new HeldList(items).has("d1")).toBe(true);
});
