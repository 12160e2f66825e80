import { expect, test } from "vitest";
import { pricePerRequest } from "../../../../../context/parts/cache/edit-price.ts";
import { compactsAt, sessionThreshold } from "../../../../../context/parts/compaction/threshold.ts";
import { defaultOptimisation } from "../../../../../protocol/optimisation/config.ts";
import { Branch } from "../cache/branch.ts";

const { compaction } = defaultOptimisation;
const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const dearer = (times: number, inputTokensAbove: number) => ({
  ...{ inputTokensAbove, input: times * 3, output: times * 15 },
  ...{ cacheRead: times * 0.3, cacheWrite: times * 3.75 },
});

/** A session whose requests grow by this many tokens each. */
function growing(tokens: number, model: object) {
  const branch = new Branch();
  branch.prompt();
  for (const cacheRead of [10_000, 10_000 + tokens]) {
    branch.answer({ usage: { input: 0, output: 1, cacheRead, cacheWrite: 0, totalTokens: cacheRead + 1 } });
  }
  return branch.context({ cost, ...model });
}

test.for([
  ["a tier of twice the price", [dearer(2, 32_000)], 30_000],
  ["a tier that is hardly dearer", [dearer(1.05, 32_000)], 100_000],
  ["a tier below any useful size", [dearer(2, 12_000)], 100_000],
  ["the cheapest of two tiers whose lower one hardly counts", [dearer(1.1, 32_000), dearer(3, 48_000)], 46_000],
] as const)(
  "below 64,000 tokens, %s is decided by the price of a request with its share of the summary",
  ([, tiers, tokens]) => {
    expect(sessionThreshold(compaction, growing(2_000, { cost: { ...cost, tiers } }))?.tokens).toBe(tokens);
  },
);

test("a given number, or an unknown growth, leaves the lower tiers out", () => {
  const tiers = [dearer(2, 32_000)];
  const at = growing(2_000, { cost: { ...cost, tiers } });
  expect(sessionThreshold({ ...compaction, maxContextTokens: 90_000 }, at)?.tokens).toBe(90_000);
  const models = { "p/m": { thresholdPercent: 0.7 } };
  expect(sessionThreshold({ ...compaction, models }, at)?.tokens).toBe(700_000);
  expect(sessionThreshold(compaction, new Branch().context({ cost: { ...cost, tiers } }))?.tokens).toBe(100_000);
});

test("a request in a cycle of very many costs what one in a cycle of many does", () => {
  const priceOf = (growthTokens: number) =>
    pricePerRequest({ compactsAt: 100_000, keptTokens: 20_000, growthTokens }, cost);
  expect(priceOf(1) / priceOf(10)).toBeCloseTo(1, 2);
});

test("the next compaction is the part's if it is on, or else pi's", () => {
  const ctx = growing(2_000, {});
  expect(compactsAt({ ...compaction, enabled: true }, ctx)).toBe(100_000);
  expect(compactsAt(compaction, ctx)).toBe(983_616);
  expect(compactsAt({ ...compaction, enabled: true, route: "off" }, ctx)).toBe(983_616);
  expect(compactsAt(compaction, growing(2_000, { contextWindow: 16_000 }))).toBeUndefined();
});
