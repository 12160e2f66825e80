import { afterAll, beforeAll, expect, test } from "vitest";
import type { TreeService } from "../../helpers/said.ts";
import { TreesPi, treeServices } from "../../helpers/trees-through-pi.ts";

// `npm run trees` does the same with any seeds, and as many.

/**
 * Trees that were once refused, or came otherwise than they were prepared: with lone surrogates in a model's own messages,
 * and with calls' ids that pi shortens.
 */
const onceFailed: Readonly<Record<TreeService, readonly number[]>> = {
  "openai-completions": [14, 32, 35, 90, 103, 166],
  "openai-responses": [10, 14, 32, 35, 156],
  "anthropic-messages": [14, 32, 35],
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
  "what 200 trees with flaws are made into is sent over %s just as it was prepared, the prompt last, and is taken",
  async (service) => {
    const { failures, sent, repairs } = await trees.through(service, new Set([...onceFailed[service], ...seeds]));
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThanOrEqual(200);
    // Nearly every rule has had something to mend in them.
    expect(Object.keys(repairs).length).toBeGreaterThanOrEqual(14);
  },
);
