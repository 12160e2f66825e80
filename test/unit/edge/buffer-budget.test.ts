import { expect, test } from "vitest";
import { BufferBudget, type Holder } from "../../../server/edge/buffer-budget.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { mainGrant } from "../../helpers/tokens.ts";

const token = (name: string): Grant => new Grant({ name, capabilities: ["observe"] });

function holder(grant: Grant | undefined, bytes: number): Holder {
  const memory = [new ArrayBuffer(bytes)];
  return { grant, heldBytes: bytes, memory: () => memory, giveUp: () => {} };
}

test("tokens share the budget of waiting bytes, and the connections of a token its share", () => {
  const budget = new BufferBudget(1_200);
  const first = token("first");
  const ofOne = Array.from({ length: 9 }, () => holder(first, 70));
  const other = holder(token("other"), 10);
  const own = [holder(mainGrant, 10), holder(undefined, 10)];
  for (const one of [...ofOne, other, ...own]) budget.join(one);
  const of = (one: Holder | undefined): number => (one === undefined ? Number.NaN : budget.shareOf(one));
  expect(of(other)).toBe(Number.POSITIVE_INFINITY);
  budget.enforce();
  // Half of it is divided by three tokens.
  expect([of(other), of(own[0]), of(ofOne[0])]).toEqual([200, 100, 200 / 9]);
  // A connection that joins and leaves twice counts once.
  budget.join(other);
  for (const one of ofOne.slice(1)) budget.leave(one);
  for (const one of ofOne.slice(1)) budget.leave(one);
  expect([of(other), of(ofOne[0])]).toEqual([200, 200]);
});
