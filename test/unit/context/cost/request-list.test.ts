import { expect, test } from "vitest";
import { maxRequests, RequestList } from "../../../../context/cost/request-list.ts";
import type { Delivery } from "../../../../protocol/delivery.ts";
import { withCarriedPushes } from "../../../../server/context/cost/carried-pushes.ts";

const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 1 };
const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, totalTokens: 10, cost };
const time = (at: number) => new Date(at).toISOString();
const answer = (id: string, startedAt: number, endedAt: number, more: object = {}) => ({
  type: "message",
  id,
  timestamp: time(endedAt),
  message: { role: "assistant", provider: "p", model: "m", stopReason: "stop", timestamp: startedAt, usage, ...more },
});

function listed(...entries: readonly unknown[]) {
  const list = new RequestList();
  for (const entry of entries) list.add(entry);
  return list.newest;
}

test("lists answers, failed ones too, summaries and cache warming; nothing else", () => {
  const failed = { usage: undefined, stopReason: "error", errorMessage: `400 ${"x".repeat(400)}` };
  const found = listed(
    { type: "session", id: "s", timestamp: time(0) },
    { type: "message", id: "u", timestamp: time(1), message: { role: "user", content: "assistant" } },
    answer("a", 2, 3),
    answer("b", 4, 5, failed),
    { type: "compaction", id: "c", timestamp: time(6), usage },
    { type: "compaction", id: "d", timestamp: time(7) },
    { type: "branch_summary", id: "e", timestamp: time(8), usage },
    { type: "usage", id: "f", timestamp: time(9), provider: "p", model: "m", usage },
  );
  expect(found).toEqual([
    { entryId: "a", kind: "answer", startedAt: 2, endedAt: 3, model: "p/m", stopReason: "stop", usage },
    expect.objectContaining({ entryId: "b", stopReason: "error", error: `400 ${"x".repeat(296)}` }),
    { entryId: "c", kind: "compaction", endedAt: 6, usage },
    { entryId: "e", kind: "branch_summary", endedAt: 8, usage },
    { entryId: "f", kind: "cache_warm", endedAt: 9, model: "p/m", usage },
  ]);
  expect(found[1]).not.toHaveProperty("usage");
});

test("leaves out what a hostile file says: no id, a long one, no time, a beginning after the end, endless words", () => {
  const found = listed(
    null,
    { ...answer("a", 2, 3), id: 7 },
    { ...answer("a", 2, 3), id: "i".repeat(129) },
    { ...answer("a", 2, 3), timestamp: "never" },
    answer("b", 9, 3, { stopReason: "s".repeat(1_000), provider: {}, usage: { input: "many" } }),
  );
  expect(found).toEqual([
    {
      entryId: "b",
      kind: "answer",
      endedAt: 3,
      stopReason: "s".repeat(32),
      usage: expect.objectContaining({ input: 0, totalTokens: 0 }),
    },
  ]);
});

test("keeps the newest requests of a long session", () => {
  const found = listed(...Array.from({ length: 3 * maxRequests + 7 }, (_, at) => answer(`e${at}`, at, at)));
  expect([found.length, found[0]?.entryId, found.at(-1)?.entryId]).toEqual([maxRequests, "e2007", "e3006"]);
});

test("an answer has the pushes that its request carried, also where the request was made again", () => {
  const attempt = (requestId: string, n: number, preparedAt: number, more: object = {}) => ({
    requestId,
    n,
    preparedAt,
    payload: "confirmed",
    ...more,
  });
  const delivery = (deliveryId: string, ...attempts: readonly object[]) =>
    ({ deliveryId, attempts }) as never as Delivery;
  const requests = listed(
    answer("old", 10, 20),
    answer("failed", 30, 40),
    answer("again", 50, 60),
    answer("last", 70, 80),
  );
  const found = withCarriedPushes(requests, [
    delivery("one", attempt("r1", 1, 29, { status: 500 }), attempt("r2", 2, 49, { status: 200, evidence: "headers" })),
    delivery("two", attempt("r2", 1, 49)),
    delivery("before", attempt("r0", 1, 1, { endedAt: 5 })),
    delivery("now", attempt("r4", 1, 81)),
  ]);
  expect(found.map(({ entryId, carried }) => [entryId, carried])).toEqual([
    ["old", undefined],
    ["failed", { requestId: "r1", preparedAt: 29, status: 500, deliveryIds: ["one"] }],
    ["again", { requestId: "r2", preparedAt: 49, status: 200, evidence: "headers", deliveryIds: ["one", "two"] }],
    ["last", undefined],
  ]);
});
