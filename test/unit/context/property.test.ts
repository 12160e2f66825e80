import { expect, test } from "vitest";
import type { ContextItem, RepairCode } from "../../../context/document/document.ts";
import { repairCodes } from "../../../context/document/document.ts";
import { readDocument } from "../../../context/document/read-document.ts";
import { repairItems } from "../../../context/document/repair.ts";
import { contextForStructured } from "../../../context/document/select.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { WireError } from "../../../protocol/errors.ts";
import { type MadeTree, makeTree, swapped } from "../../helpers/context-trees.ts";
import { refusals } from "../../helpers/service-rules.ts";

const seeds = Array.from({ length: 10_000 }, (_, index) => index + 1);

/** The items of a generated tree, repaired; undefined if the node selects nothing. */
function mended(seed: number, made: MadeTree, codes: Map<RepairCode, number>): readonly ContextItem[] | undefined {
  const { document, nodeId, target } = made;
  const note = ({ code }: { readonly code: RepairCode }) => codes.set(code, (codes.get(code) ?? 0) + 1);
  try {
    const items = contextForStructured(readDocument(document, defaultContextLimits), nodeId, { note });
    return repairItems(items, { target, repair: true, note });
  } catch (error) {
    if (error instanceof WireError && error.data["code"] === "nothing_selected") return undefined;
    throw new Error(`seed ${seed}`, { cause: error });
  }
}

test("every service accepts 10,000 repaired trees with flaws, and repairing them again changes nothing", () => {
  const codes = new Map<RepairCode, number>();
  let selected = 0;
  for (const seed of seeds) {
    const made = makeTree(seed);
    const items = mended(seed, made, codes);
    if (items === undefined) continue;
    selected += 1;
    const { target } = made;
    const again: string[] = [];
    const second = repairItems(items, { target, repair: true, note: ({ code }) => again.push(code) });
    const found = [...refusals(items, target), ...swapped(items), ...again];
    // Calling expect is slower than all of this: it is called only for seeds that fail.
    if (found.length === 0 && JSON.stringify(second) === JSON.stringify(items)) continue;
    expect({ found, second }, `seed ${seed}`).toEqual({ found: [], second: items });
  }
  // The trees are useful: nearly all select something, and every rule is needed often.
  expect(selected).toBeGreaterThan(9_500);
  const rare = repairCodes.filter((code) => (codes.get(code) ?? 0) < 20);
  expect(rare).toEqual([]);
});

test("the services refuse many of the same trees without repairs", () => {
  const refused = seeds.slice(0, 500).filter((seed) => {
    const { document, nodeId, target } = makeTree(seed);
    return refusals(contextForStructured(document, nodeId, { until: "through" }), target).length > 0;
  });
  expect(refused.length).toBeGreaterThan(250);
});

test("trees without flaws need no repair", () => {
  for (const seed of seeds.slice(0, 500)) {
    const { document, nodeId, target } = makeTree(seed, { flaws: 0 });
    if (nodeId !== document.leafId) continue;
    const codes = new Set<RepairCode>();
    const note = ({ code }: { readonly code: RepairCode }) => codes.add(code);
    const items = contextForStructured(document, nodeId, { note });
    const items2 = repairItems(items, { target, repair: true, note });
    codes.delete("foreign_reasoning");
    codes.delete("image_left_out");
    expect([...codes], `seed ${seed}`).toEqual([]);
    expect(items2.length, `seed ${seed}`).toBe(items.length);
  }
});

test("no node is taken twice", () => {
  for (const seed of seeds.slice(0, 2_000)) {
    const { document, nodeId } = makeTree(seed, { turns: 3 });
    const items = contextForStructured(document, nodeId, { until: "through" });
    const ids = items.map((item) => item.nodeId);
    expect(new Set(ids).size, `seed ${seed}`).toBe(ids.length);
  }
});
