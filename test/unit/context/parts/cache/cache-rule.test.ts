import { expect, test } from "vitest";
import { createCacheRule, decideByRule, type RuleFacts } from "../../../../../context/parts/cache/cache-rule.ts";
import { cacheLifetimeMs, cachePrices, hasLikelyExpired, missCost } from "../../../../../context/parts/cache/prices.ts";
import { defaultOptimisation } from "../../../../../protocol/optimisation/config.ts";
import { Branch } from "./branch.ts";

const batch = { freedTokens: 30_000, suffixTokens: 20_000 };
const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const unpriced = { ...cost, cacheRead: 0 };

function facts(fields: Partial<RuleFacts> = {}): RuleFacts {
  return {
    ...{ isCold: false, isUncached: false, cost, minBatchTokens: 30_000, expectedRequests: 10 },
    ...{ requestTokens: 60_000, growthTokens: 2_000, compactsAt: undefined },
    ...fields,
  };
}

test.for([
  { model: "3.00/0.30/3.75", prices: cost, needs: 10, once: 0.069 },
  { model: "2.00/0.50/0", prices: { input: 2, output: 8, cacheRead: 0.5, cacheWrite: 0 }, needs: 3, once: 0.03 },
])("at $model a batch of 30,000 tokens ahead of 20,000 needs $needs further requests", ({ prices, needs, once }) => {
  const few = decideByRule(batch, facts({ cost: prices, expectedRequests: needs - 1 }));
  const enough = decideByRule(batch, facts({ cost: prices, expectedRequests: needs }));
  expect([few.why, enough.why]).toEqual(["too_dear", "saves"]);
  expect([few.act, enough.act]).toEqual([false, true]);
  const { missedTokens, missedUsd, requests, savedUsd } = enough.forecast;
  expect([missedTokens, requests]).toEqual([20_000, needs]);
  expect(missedUsd).toBeCloseTo(once, 9);
  expect(savedUsd).toBeCloseTo((needs * 30_000 * prices.cacheRead) / 1_000_000, 9);
});

test.for([
  ["nothing is freed", { ...batch, freedTokens: 0 }, { isCold: true }, "too_small", false],
  ["a batch is too small", { ...batch, freedTokens: 29_999 }, { expectedRequests: 1_000 }, "too_small", false],
  ["the cache is cold", { freedTokens: 1, suffixTokens: 90_000 }, { isCold: true }, "cold", true],
  [
    "a small batch is above the greatest size and pays",
    { freedTokens: 1_000, suffixTokens: 500, isAboveMax: true },
    {},
    "saves",
    true,
  ],
  [
    "it is above the greatest size and does not pay",
    { ...batch, isAboveMax: true },
    { expectedRequests: 9 },
    "too_dear",
    false,
  ],
  [
    "it is above the greatest size and tiny",
    { freedTokens: 999, suffixTokens: 0, isAboveMax: true },
    {},
    "too_small",
    false,
  ],
  ["no cache is lost", { ...batch, suffixTokens: 900_000 }, { isUncached: true }, "saves", true],
  ["no cache is lost, but the batch is small", { ...batch, freedTokens: 9 }, { isUncached: true }, "too_small", false],
  ["a cached token has no price", batch, { cost: unpriced, expectedRequests: 1 }, "no_price", true],
  ["nothing follows it that would stay the same", { ...batch, suffixTokens: 0 }, {}, "saves", true],
  ["a cache read costs as much as a miss", batch, { cost: { ...cost, cacheRead: 3.75 } }, "saves", true],
  ["the next compaction is 10 requests away", batch, { expectedRequests: 99, compactsAt: 78_000 }, "saves", true],
  ["the next compaction is 9 requests away", batch, { expectedRequests: 99, compactsAt: 76_000 }, "too_dear", false],
  ["a compaction comes first", { ...batch, suffixTokens: 0 }, { compactsAt: 59_999 }, "too_dear", false],
  ["the context does not grow", batch, { compactsAt: 60_000, growthTokens: 0 }, "saves", true],
] as const)("where %s, the rule says so", ([, change, given, why, act]) => {
  expect(decideByRule(change, facts(given))).toMatchObject({ why, act });
});

test("the forecast has what an edit saves in the requests that it adds before the next compaction", () => {
  const { act, forecast } = decideByRule(batch, facts({ expectedRequests: 99, compactsAt: 76_000 }));
  expect(act).toBe(false);
  expect(forecast.requests).toBe(1 + (76_000 - 30_000) / 2_000);
  expect(forecast.savedUsd).toBeCloseTo((24 * 30_000 * 0.3) / 1_000_000, 9);
});

test("a change does not pay if it only delays a compaction that would make requests shorter", () => {
  const change = { freedTokens: 30_000, suffixTokens: 60_000 };
  const near = { requestTokens: 150_000, growthTokens: 450, compactsAt: 183_600 };
  const whyAt = (expectedRequests: number) => decideByRule(change, facts({ ...near, expectedRequests })).why;
  // Until the compaction there are 75 requests.
  expect([20, 30, 75, 90, 150, 10_000].map(whyAt)).toEqual([
    ...["too_dear", "saves", "saves", "saves"],
    ...["too_dear", "too_dear"],
  ]);
});

test("an edit that brings requests below a price tier saves the difference of the whole request", () => {
  const above = { inputTokensAbove: 50_000, input: 6, output: 22.5, cacheRead: 0.6, cacheWrite: 7.5 };
  const tiered = facts({ cost: { ...cost, tiers: [above] }, expectedRequests: 2, growthTokens: 0 });
  const { forecast } = decideByRule({ freedTokens: 20_000, suffixTokens: 10_000 }, tiered);
  expect(forecast.savedUsd).toBeCloseTo((2 * (60_000 * 0.6 - 40_000 * 0.3)) / 1_000_000, 9);
  // The request that writes again is below the tier too.
  expect(forecast.missedUsd).toBeCloseTo((10_000 * 3.45) / 1_000_000, 9);
});

test("the tier of the request's whole size determines the price, and a miss costs the difference to a read", () => {
  const above = { inputTokensAbove: 200_000, input: 6, output: 22.5, cacheRead: 0.6, cacheWrite: 7.5 };
  const tiered = { ...cost, tiers: [above] };
  expect(cachePrices(tiered, 200_000)).toEqual({ read: 0.3, miss: 3.75 });
  expect(cachePrices(tiered, 200_001)).toEqual({ read: 0.6, miss: 7.5 });
  expect(missCost(tiered, 200_001, 1_000_000)).toBeCloseTo(6.9, 9);
  expect(missCost({ input: 1, output: 1, cacheRead: 0, cacheWrite: 0 }, 10, 1_000)).toBe(0);
});

const known = { promptCache: { short: 300, long: 7_200 } };

test("a cache lives as long as pi's model says; a lost one is named by the usual time if that is unknown", () => {
  const { model } = new Branch().context({ promptCache: { short: 60, long: 7_200 } });
  expect(cacheLifetimeMs(model)).toBe(60_000);
  expect(cacheLifetimeMs(undefined)).toBeUndefined();
  expect([60_001, 60_000].map((age) => hasLikelyExpired(age, model))).toEqual([true, false]);
  expect([300_001, 300_000].map((age) => hasLikelyExpired(age, undefined))).toEqual([true, false]);
});

function rule(masking: Partial<typeof defaultOptimisation.masking> = {}) {
  const optimisation = { ...defaultOptimisation, masking: { ...defaultOptimisation.masking, ...masking } };
  const needs = { config: () => optimisation, nextTokens: () => 60_000, compactsAt: () => undefined };
  return createCacheRule(needs);
}

test("a cache of unknown lifetime is warm, and none is lost once the service has reported neither reads nor writes", () => {
  const branch = new Branch();
  const uncached = { usage: { input: 9_000, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 9_001 } };
  const missed = (): number => rule().decide(batch, branch.context()).forecast.missedTokens;
  branch.prompt();
  branch.answer(uncached, Date.now() - 9_000_000);
  expect([rule().isCold(branch.context()), missed()]).toEqual([false, 20_000]);
  expect(rule().isCold(branch.context(known))).toBe(true);
  branch.prompt();
  branch.answer(uncached);
  expect([rule().isCold(branch.context()), missed()]).toEqual([false, 0]);
  branch.answer({ usage: { ...uncached.usage, cacheWrite: 9_000 } });
  expect([rule().isCold(branch.context()), missed()]).toEqual([false, 20_000]);
});

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
  expect(rule().isCold(branch.context(known))).toBe(true);
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
  expect(rule().isCold(branch.context(known))).toBe(true);
  branch.append("usage", { kind: "cache_warm" }, Date.now() - 10_000);
  expect(rule().isCold(branch.context(known))).toBe(false);
});

test("ten requests are expected at first, then as many as the session's prompts had, counting steering to its run", () => {
  const branch = new Branch();
  const expected = (masking = {}): number => rule(masking).decide(batch, branch.context()).forecast.requests;
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
  expect(expected({ expectedRequests: 40 })).toBe(40);
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
  const free = branch.context({ cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } });
  expect(rule().decide(batch, free)).toMatchObject({ act: true, why: "no_price" });
});
