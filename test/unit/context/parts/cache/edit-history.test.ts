import { expect, test } from "vitest";
import { CacheLedger } from "../../../../../context/parts/cache/cache-ledger.ts";
import { editPrices } from "../../../../../context/parts/cache/edit-history.ts";
import { RECALL_MARK, recordData } from "../../../../../context/parts/recall/record.ts";
import { createValidator } from "../../../../../protocol/validation.ts";
import { Branch } from "./branch.ts";

const use = (cacheRead: number, cacheWrite: number, input = 0) => ({
  usage: { input, output: 10, cacheRead, cacheWrite, totalTokens: input + cacheRead + cacheWrite + 10 },
});

/** Records an edit that frees 10,000 tokens, with its forecast. */
function edit(branch: Branch, part: string, tokens: number, number = 1, id?: string): string {
  const place = { kind: "entry", entryId: "e1" } as const;
  const data = recordData(part, [{ number, part, tool: "read", tokens: 10_000, place }], {
    ...{ tokens, usd: tokens * 3.45e-6 },
    ...{ requests: 4, savedUsd: 0.012 },
  });
  return branch.append("custom", { customType: RECALL_MARK, data, ...(id === undefined ? {} : { id }) });
}

test("an edit is compared with its forecast by the tokens that the next request missed, and by the requests until a compaction", () => {
  const branch = new Branch();
  branch.prompt();
  branch.answer(use(40_000, 10_000));
  const entryId = edit(branch, "masking", 19_000);
  // 20,000 tokens before the edit are read; 10,000 are gone, and 20,000 of the rest are written again.
  branch.answer(use(20_000, 22_000));
  branch.answer(use(42_000, 2_000));
  const [open] = editPrices(branch.context()).recent;
  expect(open).toMatchObject({ part: "masking", entryId, freedTokens: 10_000, isOver: false });
  expect(open?.predicted.missedTokens).toBe(19_000);
  expect(open?.actual).toMatchObject({ missedTokens: 20_000, requests: 2 });
  expect(open?.actual.missedUsd).toBeCloseTo(20_000 * 3.45e-6, 9);
  expect(open?.actual.savedUsd).toBeCloseTo(2 * 10_000 * 0.3e-6, 9);

  branch.answer(use(44_000, 1_000));
  branch.append("compaction", { summary: "So far.", firstKeptEntryId: "e1" });
  branch.answer(use(0, 9_000));
  edit(branch, "deduplication", 0, 2);
  branch.answer(use(9_000, 1_000));
  const { count, predicted, actual, recent } = editPrices(branch.context());
  expect(recent.map(({ isOver, actual: { requests } }) => [isOver, requests])).toEqual([
    [true, 3],
    [false, 1],
  ]);
  expect([count, predicted.requests, actual.requests]).toEqual([2, 8, 4]);
  expect(editPrices(branch.context(), (part) => part === "masking").count).toBe(1);
});

test("an edit of a cache that has expired lost nothing, and one that still was there lost it", () => {
  for (const [readTokens, missed] of [
    [0, 0],
    [20_000, 20_000],
  ] as const) {
    const branch = new Branch();
    branch.prompt();
    branch.answer(use(40_000, 10_000));
    edit(branch, "masking", 0);
    branch.answer(use(readTokens, 45_000 - readTokens));
    expect(editPrices(branch.context()).actual.missedTokens).toBe(missed);
  }
});

test("at a service that reports no writes, the whole prompt was cached", () => {
  const branch = new Branch();
  branch.prompt();
  branch.answer(use(40_000, 0, 10_000));
  edit(branch, "masking", 1);
  branch.answer(use(20_000, 0, 30_000));
  expect(editPrices(branch.context()).actual.missedTokens).toBe(20_000);
});

test("edits at one boundary are charged once, and none is charged for another model's request", () => {
  const branch = new Branch();
  branch.prompt();
  branch.answer(use(40_000, 10_000));
  edit(branch, "deduplication", 5, 1);
  edit(branch, "masking", 9, 2);
  branch.answer(use(20_000, 15_000));
  expect(editPrices(branch.context()).recent.map(({ actual }) => actual.missedTokens)).toEqual([0, 10_000]);
  edit(branch, "masking", 9, 3);
  branch.answer({ ...use(0, 30_000), model: "other" });
  expect(editPrices(branch.context()).recent[2]?.actual).toMatchObject({ missedTokens: 0, requests: 1 });
});

test("a session without edits has sums of 0, and recent edits are bounded", () => {
  const branch = new Branch();
  expect(editPrices(branch.context())).toMatchObject({ count: 0, recent: [], actual: { savedUsd: 0 } });
  for (let at = 1; at <= 101; at += 1) edit(branch, "masking", 1, at);
  const { count, recent } = editPrices(branch.context());
  expect([count, recent.length]).toEqual([101, 100]);
});

test("the savings of 100 edits are counted at a time, and older ones are over", () => {
  const branch = new Branch();
  branch.prompt();
  for (let at = 1; at <= 101; at += 1) edit(branch, "masking", 1, at);
  branch.answer(use(40_000, 0));
  expect(editPrices(branch.context()).actual.requests).toBe(100);
});

test.for<[string, (branch: Branch) => ReturnType<Branch["context"]>]>([
  [
    "usage",
    (branch) => {
      for (const tokens of ["1e999", "1e308", "1e308"]) branch.answer(use(JSON.parse(tokens), 0, JSON.parse(tokens)));
      return branch.context();
    },
  ],
  [
    "an id",
    (branch) => {
      edit(branch, "masking", 1, 2, "e".repeat(129));
      return branch.context();
    },
  ],
  ["a price", (branch) => branch.context({ cost: { cacheRead: 0.3, cacheWrite: 0 } })],
  [
    "an infinite price",
    (branch) => branch.context({ cost: { input: 1, cacheRead: Number.POSITIVE_INFINITY, cacheWrite: 0 } }),
  ],
])("the report is valid whatever a file or an extension has as %s", ([, change]) => {
  const branch = new Branch();
  branch.prompt();
  branch.answer(use(40_000, 10_000));
  edit(branch, "masking", 1);
  branch.answer(use(20_000, 0, 20_000));
  const ctx = change(branch);
  branch.answer(use(50_000, 0));
  const result: unknown = JSON.parse(JSON.stringify({ ...new CacheLedger().report(), edits: editPrices(ctx) }));
  expect(createValidator().result("cache/report", result)).toEqual([]);
});
