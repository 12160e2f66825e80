import { expect, test } from "vitest";
import { createCacheRule, decideByRule, type RuleFacts } from "../../../../../context/parts/cache/cache-rule.ts";
import { cacheLifetimeMs, cachePrices, missCost } from "../../../../../context/parts/cache/prices.ts";
import { defaultOptimisation } from "../../../../../protocol/optimisation/config.ts";
import { Branch } from "./branch.ts";

const batch = { freedTokens: 30_000, suffixTokens: 20_000 };
const dear = { read: 0.3, miss: 3.75 };

function facts(fields: Partial<RuleFacts> = {}): RuleFacts {
  return { isCold: false, prices: dear, expectedRequests: 10, minBatchTokens: 30_000, ...fields };
}

test.for([
  { model: "3.00/0.30/3.75", cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }, needs: 10, once: 0.069 },
  { model: "2.00/0.50/0", cost: { input: 2, output: 8, cacheRead: 0.5, cacheWrite: 0 }, needs: 3, once: 0.03 },
])("at $model a batch of 30,000 tokens ahead of 20,000 needs $needs further requests", ({ cost, needs, once }) => {
  const prices = cachePrices(cost, 100_000);
  const few = decideByRule(batch, facts({ prices, expectedRequests: needs - 1 }));
  const enough = decideByRule(batch, facts({ prices, expectedRequests: needs }));
  expect([few.why, enough.why]).toEqual(["too_dear", "saves"]);
  expect([few.act, enough.act]).toEqual([false, true]);
  expect(enough.costUsd).toBeCloseTo(once, 9);
  expect(enough.savedUsdPerRequest).toBeCloseTo((30_000 * cost.cacheRead) / 1_000_000, 9);
});

test.for([
  ["nothing is freed", { ...batch, freedTokens: 0 }, facts({ isCold: true }), "too_small", false],
  ["a batch is too small", { ...batch, freedTokens: 29_999 }, facts({ expectedRequests: 1_000 }), "too_small", false],
  ["the cache is cold", { freedTokens: 1, suffixTokens: 90_000 }, facts({ isCold: true }), "cold", true],
  [
    "the context is above its greatest size",
    { ...batch, freedTokens: 1, isAboveMax: true },
    facts(),
    "above_max",
    true,
  ],
  [
    "the model has no price for what is cached",
    batch,
    facts({ prices: undefined, expectedRequests: 1 }),
    "no_price",
    true,
  ],
  ["nothing follows it that would stay the same", { ...batch, suffixTokens: 0 }, facts(), "saves", true],
  ["a cache read costs as much as a miss", batch, facts({ prices: { read: 1, miss: 1 } }), "saves", true],
] as const)("where %s, the rule says so", ([, change, given, why, act]) => {
  expect(decideByRule(change, given)).toMatchObject({ why, act });
});

test("the tier of the request's whole size determines the price, and a miss costs the difference to a read", () => {
  const above = { inputTokensAbove: 200_000, input: 6, output: 22.5, cacheRead: 0.6, cacheWrite: 7.5 };
  const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75, tiers: [above] };
  expect(cachePrices(cost, 200_000)).toEqual({ read: 0.3, miss: 3.75 });
  expect(cachePrices(cost, 200_001)).toEqual({ read: 0.6, miss: 7.5 });
  expect(missCost(cost, 200_001, 1_000_000)).toBeCloseTo(6.9, 9);
  expect(missCost({ input: 1, output: 1, cacheRead: 0, cacheWrite: 0 }, 10, 1_000)).toBe(0);
});

test("a cache lives as long as pi configures it", () => {
  const { model } = new Branch().context({ promptCache: { short: 60, long: 7_200 } });
  expect(cacheLifetimeMs(model)).toBe(60_000);
  expect(cacheLifetimeMs(undefined)).toBe(300_000);
});

function rule(masking: Partial<typeof defaultOptimisation.masking> = {}) {
  const optimisation = { ...defaultOptimisation, masking: { ...defaultOptimisation.masking, ...masking } };
  return createCacheRule({ config: () => optimisation, audit: { value: undefined } });
}

test("the cache is warm after an answer, and cold for another model, after its lifetime, a compaction or on another branch", () => {
  const branch = new Branch();
  expect(rule().isCold(branch.context())).toBe(true);
  const first = branch.prompt();
  branch.answer();
  expect(rule().isCold(branch.context())).toBe(false);
  expect(rule().isCold(branch.context({ id: "other" }))).toBe(true);
  branch.goTo(first);
  branch.answer();
  expect(rule().isCold(branch.context())).toBe(false);
  branch.goTo("e2");
  expect(rule().isCold(branch.context())).toBe(true);
  branch.goTo("e3");
  branch.append("compaction", { summary: "So far.", firstKeptEntryId: "e1" });
  expect(rule().isCold(branch.context())).toBe(true);
});

test("a service that reports no usage has a cache too, until it is too old or another model's", () => {
  const silent = { usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 } };
  const branch = new Branch();
  branch.append("model_change", { provider: "p", modelId: "m" });
  branch.prompt();
  branch.answer(silent, Date.now() - 301_000);
  expect(rule().isCold(branch.context())).toBe(true);
  branch.answer(silent);
  expect(rule().isCold(branch.context())).toBe(false);
  expect(rule().isCold(branch.context({ id: "other" }))).toBe(true);
  expect(rule().decide({ freedTokens: 100, suffixTokens: 0 }, branch.context())).toMatchObject({ why: "too_small" });
  branch.append("compaction", { summary: "So far.", firstKeptEntryId: "e1" });
  expect(rule().isCold(branch.context())).toBe(true);
});

test("an answer that failed leaves no cache", () => {
  const branch = new Branch();
  branch.prompt();
  branch.answer({ usage: undefined, stopReason: "error" });
  expect(rule().isCold(branch.context())).toBe(true);
});

test("a model's name in its answers does not make its cache cold; asking another model does", () => {
  const branch = new Branch();
  branch.append("model_change", { provider: "p", modelId: "m" });
  branch.prompt();
  branch.answer({ provider: "inner", model: "routed" });
  expect(rule().isCold(branch.context())).toBe(false);
  branch.append("model_change", { provider: "p", modelId: "other" });
  expect(rule().isCold(branch.context({ id: "other" }))).toBe(true);
  branch.answer();
  expect(rule().isCold(branch.context({ id: "other" }))).toBe(false);
  // A session that is resumed with another model has no entry about that.
  expect(rule().isCold(branch.context({ id: "third" }))).toBe(true);
  branch.answer({ model: "third" });
  expect(rule().isCold(branch.context({ id: "third" }))).toBe(false);
});

test("a warming request counts as a use of the cache", () => {
  const branch = new Branch();
  branch.prompt();
  branch.answer({}, Date.now() - 301_000);
  expect(rule().isCold(branch.context())).toBe(true);
  branch.append("usage", { kind: "cache_warm" }, Date.now() - 10_000);
  expect(rule().isCold(branch.context())).toBe(false);
});

test("ten requests are expected at first, then as many as the session's prompts had, counting steering to its run", () => {
  const branch = new Branch();
  const expected = (): number => rule().expectedRequests(branch.context());
  expect(expected()).toBe(10);
  branch.prompt();
  for (let i = 0; i < 11; i += 1) branch.call();
  branch.append("custom_message", { customType: "x", content: "And this.", display: true });
  expect(expected()).toBe(11);
  branch.answer();
  branch.prompt();
  expect(expected()).toBe(12);
  branch.call();
  branch.answer();
  branch.prompt();
  expect(expected()).toBe(7);
  expect(rule({ expectedRequests: 40 }).expectedRequests(branch.context())).toBe(40);
});

test("batches are at most 15 % of the window", () => {
  const branch = new Branch();
  expect(rule().minBatchTokens(branch.context())).toBe(30_000);
  expect(rule().minBatchTokens(branch.context({ contextWindow: 100_000 }))).toBe(15_000);
});

test("a decision depends on the session: its last request's size, its prompts, its model", () => {
  const branch = new Branch();
  branch.prompt();
  branch.answer();
  expect(rule().decide(batch, branch.context())).toMatchObject({ act: true, why: "saves" });
  expect(rule({ expectedRequests: 9 }).decide(batch, branch.context())).toMatchObject({ act: false, why: "too_dear" });
  const unpriced = branch.context({ cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } });
  expect(rule().decide(batch, unpriced)).toMatchObject({ act: true, why: "no_price" });
});
