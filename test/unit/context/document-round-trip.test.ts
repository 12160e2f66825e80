import { expect, test } from "vitest";
import type { ContextItem } from "../../../protocol/context/document.ts";
import { exportContext } from "../../../protocol/context/export.ts";
import { defaultContextLimits } from "../../../protocol/context/limits.ts";
import { prepareContext } from "../../../protocol/context/prepare.ts";
import { sessionEntries } from "../../../protocol/context/session-entries.ts";
import { WireError } from "../../../protocol/errors.ts";
import { makeTree } from "../../helpers/context-trees.ts";

const header = { id: "s-1", timestamp: 1_800_000_000_000, cwd: "/" };

test("2,000 trees with flaws come back from sessions as they are after their repair", () => {
  let compared = 0;
  for (let seed = 1; seed <= 2_000; seed++) {
    const { document, nodeId, target } = makeTree(seed);
    try {
      const prepared = prepareContext(document, { nodeId, budget: null }, target, defaultContextLimits);
      const entries = [...sessionEntries(prepared, header)].map(
        (entry) => JSON.parse(JSON.stringify(entry)) as unknown,
      );
      const back = exportContext(entries, { includeSystem: true, includeReasoning: true }).document.items;
      const want = prepared.items.map(normal);
      if (JSON.stringify(sorted(back)) !== JSON.stringify(sorted(want))) expect(back, `seed ${seed}`).toEqual(want);
      compared += 1;
    } catch (error) {
      if (!(error instanceof WireError) || error.data["code"] !== "nothing_selected") throw error;
    }
  }
  expect(compared).toBeGreaterThan(1_900);
});

function normal(item: ContextItem): ContextItem {
  return item;
}
function sorted(x: unknown): unknown {
  if (Array.isArray(x)) return x.map(sorted);
  if (typeof x !== "object" || x === null) return x;
  return Object.fromEntries(
    Object.entries(x)
      .filter(([, v]) => v !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => [k, sorted(v)]),
  );
}
