import { afterAll, beforeAll, expect, test } from "vitest";
import type { TreeService } from "../../helpers/said.ts";
import { TreesPi, treeServices } from "../../helpers/trees-through-pi.ts";

// `npm run trees` does the same with any seeds and any number.

/**
 * Trees that were once refused, or arrived differently than prepared: with lone surrogates in a model's own messages,
 * and with call ids that pi shortens.
 */
const onceFailed: Readonly<Record<TreeService, readonly number[]>> = {
  "openai-completions": [
    10, 13, 18, 19, 26, 32, 40, 46, 61, 65, 66, 78, 97, 104, 105, 106, 119, 124, 132, 134, 142, 147, 166, 172, 181, 189,
    196, 200,
  ],
  "openai-responses": [2, 56, 87, 101, 137, 161, 172, 180, 183, 199],
  "anthropic-messages": [13, 19, 32, 35, 40, 61, 66, 78, 86, 97, 109, 119, 147, 166, 172],
};
const seeds = Array.from({ length: 206 }, (_, index) => index + 1);

let trees: TreesPi;
beforeAll(async () => {
  trees = await TreesPi.start();
});
afterAll(async () => {
  await trees[Symbol.asyncDispose]();
});

test.each(treeServices)(
  "the contexts of 200 trees with flaws are sent over %s exactly as prepared, with the prompt last, and are accepted",
  async (service) => {
    const { failures, sent, repairs } = await trees.through(service, new Set([...onceFailed[service], ...seeds]));
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThanOrEqual(200);
    // Nearly every rule has repaired something in them.
    expect(Object.keys(repairs).length).toBeGreaterThanOrEqual(14);
  },
);
