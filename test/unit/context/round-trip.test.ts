import { expect, test } from "vitest";
import type { ContextItem } from "../../../context/document/document.ts";
import { exportContext } from "../../../context/document/export.ts";
import { heldEntries, heldRoot } from "../../../context/document/held-entries.ts";
import { normalise } from "../../../context/document/normalise.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { WireError } from "../../../protocol/errors.ts";
import { makeTree } from "../../helpers/context-trees.ts";
import { sessionTarget } from "../../helpers/pi-session.ts";
import { randomSession } from "../../helpers/random-session.ts";
import { imported } from "../../helpers/through-document.ts";
import { Random } from "../../soak/random.ts";

const header = { id: "s", timestamp: 1_800_000_000_000, cwd: "/tmp" };

test("for 1,000 random trees, importing (in a file or in pi) and exporting gives the normalised document", () => {
  let count = 0;
  for (let seed = 1; seed <= 1_000; seed += 1) {
    const { document, nodeId, target } = makeTree(seed);
    const options = { includeSystem: seed % 2 === 0, includeReasoning: seed % 3 === 0 };
    let expected: readonly ContextItem[];
    try {
      expected = normalise(document, target, { nodeId, ...options }).items ?? [];
    } catch (error) {
      if (error instanceof WireError && error.data["code"] === "nothing_selected") continue;
      throw new Error(`seed ${seed}`, { cause: error });
    }
    const prepared = prepareContext(document, { nodeId, budget: null }, target, defaultContextLimits);
    const held = heldEntries(prepared.messages, prepared.hash, heldRoot(prepared));
    for (const entries of [sessionEntries(prepared, header), held]) {
      const lines = [...entries].map((entry) => JSON.parse(JSON.stringify(entry)) as unknown);
      const { items } = exportContext(lines, options).document;
      count += 1;
      if (sorted(items) === sorted(expected)) continue;
      expect(items, `seed ${seed}`).toEqual(expected);
    }
  }
  expect(count).toBeGreaterThan(1_900);
});

test.each(["projected", "full"] as const)("so is that of an export (%s) of 200 sessions of pi's", (view) => {
  let count = 0;
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = new Random(seed);
    const session = randomSession(random, random.integer(1, 40));
    const { document } = exportContext(session.entries, { view, includeReasoning: true });
    const { entries } = imported(document, sessionTarget);
    if (entries.length === 0) continue;
    const expected = normalise(document, sessionTarget, { includeReasoning: true, until: "through" }).items;
    const lines = entries.map((entry) => JSON.parse(JSON.stringify(entry)) as unknown);
    expect(exportContext(lines, { includeReasoning: true }).document.items, `seed ${seed}`).toEqual(expected);
    count += 1;
  }
  expect(count).toBeGreaterThan(180);
});

test("normalising a normalised document changes nothing", () => {
  for (let seed = 1; seed <= 500; seed += 1) {
    const { document, target } = makeTree(seed);
    try {
      const once = normalise(document, target, { includeSystem: true, includeReasoning: true });
      expect(normalise(once, target, { includeSystem: true, includeReasoning: true }), `seed ${seed}`).toEqual(once);
    } catch (error) {
      if (!(error instanceof WireError) || error.data["code"] !== "nothing_selected") throw error;
    }
  }
});

/** JSON with its keys in order. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([first], [second]) => (first < second ? -1 : 1)))
      : one,
  );
}
