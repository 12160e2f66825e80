import { expect, test } from "vitest";
import { decideByRule } from "../../../../../context/parts/cache/cache-rule.ts";
import { AuditedSession } from "./audited-session.ts";

// A service that caches everything it has read, and a run whose every request adds an output.

const requests = 200;
const outputTokens = 1_000;
const promptTokens = 4_000;

/** Masks outputs, from the oldest on, at the boundaries where `masks` says how many. */
function run(masks: (facts: { readonly request: number; readonly open: number }) => number) {
  const session = new AuditedSession();
  session.branch.prompt();
  const entries: string[] = [];
  let [masked, batches, uncached] = [0, 0, 0];
  let cached: readonly number[] = [];
  for (let request = 0; request < requests; request += 1) {
    const messages = entries.map((_, at) => ({ role: "tool", content: at < masked ? "[masked]" : `Output ${at}.` }));
    const sizes = [promptTokens, ...entries.map((_, at) => (at < masked ? 10 : outputTokens))];
    const same = sizes.findIndex((size, at) => size !== cached[at]);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const cacheRead = sizes.slice(0, same === -1 ? sizes.length : same).reduce((sum, size) => sum + size, 0);
    uncached += total - cacheRead;
    cached = sizes;
    session.request({ messages, usage: { input: total - cacheRead, cacheRead, cacheWrite: 0, output: 1 } });
    entries.push(
      session.branch.append("message", { message: { role: "toolResult", content: [], timestamp: request } }),
    );
    const more = Math.min(masks({ request, open: entries.length - masked }), entries.length - masked);
    if (more === 0) continue;
    const targets = entries.slice(masked, masked + more);
    session.changes.add("masking", targets);
    for (const targetId of targets)
      session.branch.append("context_edit", { targetId, replacement: { content: "[masked]" } });
    masked += more;
    batches += 1;
  }
  return { session, batches, uncached, causes: session.audit.value?.ledger.report().causes ?? {} };
}

test("if 2 % of the requests edit early text, their share of the uncached input is reported with its cause", () => {
  const { uncached, causes } = run(({ request }) => (request % 50 === 48 ? 1 : 0));
  expect(Object.keys(causes)).toEqual(["edit:masking"]);
  expect(causes["edit:masking"]?.count).toBe(requests / 50);
  expect((causes["edit:masking"]?.missedTokens ?? 0) / uncached).toBeGreaterThan(0.6);
});

test("under the rule, changes of 200 requests are few batches, and no others break the cache", () => {
  const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
  const kept = 10;
  const { batches, causes } = run(({ open }) => {
    const freed = Math.max(0, open - kept) * outputTokens;
    const change = { freedTokens: freed, suffixTokens: kept * outputTokens };
    const facts = {
      ...{ isCold: false, isUncached: false, cost, expectedRequests: 10, minBatchTokens: 30_000 },
      ...{ requestTokens: 60_000, growthTokens: 1_000, compactsAt: undefined },
    };
    return decideByRule(change, facts).act ? open - kept : 0;
  });
  expect(batches).toBe(6);
  expect(causes["edit:masking"]?.count).toBeLessThanOrEqual(batches);
  expect(Object.keys(causes)).toEqual(["edit:masking"]);
});
