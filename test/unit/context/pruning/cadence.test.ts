import { expect, test } from "vitest";
import { breakerMessage, nothingToCompress } from "../../../../context/pruning/compress/messages.ts";
import { WAITS_FOR_USER } from "../../../../context/pruning/mode.ts";
import { PRUNING_OFF } from "../../../../context/pruning/switch.ts";
import { defaultPruning } from "../../../../protocol/pruning/config.ts";
import { Clock, type Reply, storedText } from "./clock.ts";

const failed: Reply = { compress: "m999 does not exist. The newest id is m120." };
const stored: Reply = { compress: storedText };

test("below the lower limit there is no reminder in any case", () => {
  const clock = new Clock();
  clock.share = 0.39;
  clock.user();
  expect(clock.requests(40)).toEqual({});
  expect(clock.branch.entries.some(({ type }) => type === "custom")).toBe(false);
});

test("between the limits the first request after a user's message has one, at most every second message", () => {
  const clock = new Clock();
  const kinds = Array.from({ length: 6 }, () => {
    clock.user();
    return [clock.request({ results: 1 }), clock.request()];
  });
  const [turn, none] = [
    ["turn", undefined],
    [undefined, undefined],
  ];
  expect(kinds).toEqual([turn, none, turn, none, turn, none]);
});

test("with a longer debounce there are fewer turn reminders", () => {
  const clock = new Clock({ nudgeDebounceTurns: 3 });
  const kinds = Array.from({ length: 7 }, () => {
    clock.user();
    return clock.request();
  });
  expect(kinds).toEqual(["turn", undefined, undefined, "turn", undefined, undefined, "turn"]);
});

test("long work without a user message causes a reminder at the threshold, then every few requests", () => {
  const clock = new Clock();
  clock.user();
  expect(clock.requests(27)).toEqual({ 0: "turn", 15: "iteration", 20: "iteration", 25: "iteration" });
  clock.user();
  expect(clock.requests(17)).toEqual({ 15: "iteration" });
});

test("the configured thresholds of long work apply", () => {
  const clock = new Clock({ iterationNudgeThreshold: 4, nudgeFrequency: 3 });
  clock.user();
  expect(clock.requests(12)).toEqual({ 0: "turn", 4: "iteration", 7: "iteration", 10: "iteration" });
});

test("above the upper limit there is a reminder immediately, then every few requests, and a strong one from the third on", () => {
  const clock = new Clock();
  clock.user();
  expect(clock.requests(3)).toEqual({ 0: "turn" });
  clock.share = 0.8;
  expect(clock.requests(18)).toEqual({ 0: "limit-soft", 5: "limit-soft", 10: "limit-strong", 15: "limit-strong" });
});

test("an attempt restarts the count of soft reminders", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.user();
  expect(clock.requests(6)).toEqual({ 0: "limit-soft", 5: "limit-soft" });
  expect(clock.request(stored)).toBeUndefined();
  expect(clock.requests(10)).toEqual({ 5: "limit-soft" });
});

test("with force the first one is strong", () => {
  const clock = new Clock({ nudgeForce: "strong" });
  clock.share = 0.9;
  clock.user();
  expect(clock.requests(7)).toEqual({ 0: "limit-strong", 5: "limit-strong" });
});

test.for([
  { isManual: false, share: 0.5, expected: { 0: "turn", 15: "iteration" } },
  { isManual: true, share: 0.5, expected: {} },
  {
    isManual: false,
    share: 0.9,
    expected: { 0: "limit-soft", 5: "limit-soft", 10: "limit-strong", 15: "limit-strong" },
  },
  {
    isManual: true,
    share: 0.9,
    expected: { 0: "limit-soft", 5: "limit-soft", 10: "limit-strong", 15: "limit-strong" },
  },
])("where manual mode is $isManual and $share of the window is taken, reminders are $expected", (row) => {
  const clock = new Clock();
  clock.isManual = row.isManual;
  clock.share = row.share;
  clock.user();
  expect(clock.requests(17)).toEqual(row.expected);
});

test("directly after a compaction there is none until a response has reported usage, and then not immediately", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.user();
  expect(clock.request({ results: 1 })).toBe("limit-soft");
  clock.branch.compact("e1");
  clock.share = undefined;
  expect(clock.requests(1)).toEqual({});
  clock.share = 0.85;
  expect(clock.requests(7)).toEqual({ 4: "limit-soft" });
});

test("after a failed attempt the next reminder waits twice as long, and at most eight times as long", () => {
  const clock = new Clock({ nudges: { maxFailures: 100, backoffMax: 8, breakerCooldown: 20 } });
  clock.share = 0.9;
  clock.user();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 5; attempt += 1) {
    clock.request(failed);
    let waited = 0;
    // The first request after the attempt is 0.
    while (clock.request({ results: 1 }) === undefined) waited += 1;
    waits.push(waited);
  }
  expect(waits).toEqual([10, 20, 40, 40, 40]);
  clock.request(stored);
  expect(Object.keys(clock.requests(12))).toEqual(["5", "10"]);
});

test("several failures in a row stop reminders and compressions for some requests, which is reported once", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.user();
  for (let attempt = 0; attempt < 2; attempt += 1) clock.request(failed);
  expect(clock.broken).toBeUndefined();
  clock.request(failed);
  expect(clock.broken).toBe(3);
  // A refusal for this reason is not a further failure, and does not extend it.
  clock.request({ compress: breakerMessage(3) });
  expect(clock.requests(18)).toEqual({});
  expect(clock.broken).toBe(3);
  expect(clock.requests(1)).toEqual({});
  expect(clock.broken).toBeUndefined();
  expect(clock.requests(1)).toEqual({ 0: "limit-soft" });
  const told = clock.told("pruning/degraded");
  expect(told).toEqual([{ reason: "breaker", message: expect.stringMatching(/^3 compressions in a row have failed/) }]);
});

test("the number of failures that stop reminders, the duration, and the growth of waits are configurable", () => {
  const clock = new Clock({ nudgeFrequency: 2, nudges: { maxFailures: 2, backoffMax: 1, breakerCooldown: 3 } });
  clock.share = 0.9;
  clock.user();
  clock.request(failed);
  expect(clock.requests(4)).toEqual({ 2: "limit-soft" });
  clock.request(failed);
  expect(clock.broken).toBe(2);
  expect(clock.requests(3)).toEqual({});
  expect(clock.broken).toBeUndefined();
  expect(clock.requests(2)).toEqual({ 0: "limit-soft" });
});

test("a message of the user restarts reminders", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.user();
  for (let attempt = 0; attempt < 3; attempt += 1) clock.request(failed);
  expect(clock.broken).toBe(3);
  clock.user("Try again.");
  expect(clock.broken).toBeUndefined();
  expect(Object.keys(clock.requests(8))).toEqual(["5"]);
});

test("if there was nothing to compress only the limit causes reminders, until the next user message", () => {
  const clock = new Clock({ iterationNudgeThreshold: 1 });
  clock.user();
  clock.request({ compress: `m999 does not exist.\n${nothingToCompress}` });
  expect(clock.requests(20)).toEqual({});
  clock.share = 0.9;
  // It has failed, so that reminders wait twice as long.
  expect(clock.requests(12)).toEqual({ 0: "limit-soft", 10: "limit-soft" });
  clock.share = 0.5;
  expect(clock.requests(12)).toEqual({});
  clock.user();
  clock.user();
  expect(clock.requests(1)).toEqual({ 0: "turn" });
  expect(clock.broken).toBeUndefined();
});

test("a call that waits for the user has not failed", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.user();
  for (let attempt = 0; attempt < 5; attempt += 1) clock.request({ compress: WAITS_FOR_USER });
  expect(clock.broken).toBeUndefined();
  expect(clock.requests(6)).toEqual({ 5: "limit-soft" });
});

test("text that a call quotes from its own arguments does not determine its outcome", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.user();
  for (const quoted of [PRUNING_OFF, WAITS_FOR_USER, nothingToCompress]) {
    clock.request({ compress: `"${quoted}" is not an id. Use mNNN or bN as shown in the context.` });
  }
  expect(clock.broken).toBe(3);
});

test("a repeated request has the same reminder, byte for byte, and counts once", () => {
  const clock = new Clock();
  clock.share = 0.85;
  clock.user();
  const first = clock.reminder();
  expect(first).toContain("85 % (85,000 of 100,000 tokens)");
  clock.share = 0.95;
  clock.answer("error");
  expect(clock.reminder()).toBe(first);
  clock.answer("error");
  expect(clock.reminder()).toBe(first);
  clock.answer({ results: 1 });
  expect(clock.told("pruning/nudged")).toEqual([{ kind: "limit-soft", usage: 0.85, tokens: 85_000 }]);
  expect(clock.requests(6)).toEqual({ 4: "limit-soft" });
});

test("a reminder without an answer does not count", () => {
  const clock = new Clock();
  clock.share = 0.85;
  clock.user();
  expect(clock.request("error")).toBe("limit-soft");
  clock.user("Again.");
  expect(clock.request({ results: 1 })).toBe("limit-soft");
});

test("reminders are recorded on the branch: another process continues the count, and another branch has its own", () => {
  const clock = new Clock();
  clock.share = 0.85;
  clock.user();
  const first = clock.branch.leaf as string;
  expect(clock.requests(7)).toEqual({ 0: "limit-soft", 5: "limit-soft" });
  clock.begin();
  expect(clock.requests(4)).toEqual({ 3: "limit-strong" });
  clock.branch.go(first);
  clock.user("Otherwise.");
  expect(clock.requests(6)).toEqual({ 0: "limit-soft", 5: "limit-soft" });
});

test("a proposal that a boundary did not accept is repeated, and counts in the meantime", () => {
  const clock = new Clock();
  clock.share = 0.85;
  clock.user();
  clock.takesDrafts = false;
  expect(clock.requests(4)).toEqual({ 0: "limit-soft" });
  expect(clock.branch.entries.filter(({ type }) => type === "custom")).toEqual([]);
  clock.takesDrafts = true;
  expect(clock.requests(7)).toEqual({ 1: "limit-soft", 6: "limit-strong" });
  expect(clock.branch.entries.filter(({ type }) => type === "custom")).toHaveLength(3);
});

test("records written by others are not trusted", () => {
  const clock = new Clock();
  clock.share = 0.85;
  clock.user();
  const at = clock.branch.leaf;
  for (const data of [
    null,
    { v: 2, kind: "limit-soft", at },
    { v: 1, kind: "all", at },
    { v: 1, kind: "limit-soft", at: 3 },
  ]) {
    clock.branch.add({ type: "custom", customType: "pi-rpcd.nudge", data });
  }
  clock.branch.add({ type: "custom", customType: "pi-rpcd.nudge", data: { v: 1, kind: "turn", at: "elsewhere" } });
  expect(clock.requests(1)).toEqual({ 0: "limit-soft" });
});

test("while pruning is off nothing is added, counted or written", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.off = "The tool compress is not active.";
  clock.user();
  expect(clock.requests(20)).toEqual({});
  expect(clock.branch.entries.filter(({ type }) => type === "custom")).toEqual([]);
  clock.off = undefined;
  expect(clock.requests(1)).toEqual({ 0: "limit-soft" });
});

// Reported from use.

test("of twenty prompts after each of which the model compresses, ten have a reminder", () => {
  const clock = new Clock();
  let told = 0;
  for (let prompt = 0; prompt < 20; prompt += 1) {
    clock.user();
    if (clock.request(stored) !== undefined) told += 1;
    clock.request();
  }
  expect(told).toBe(10);
});

test("a model that compresses at each reminder is reminded once in six requests, not in each", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.user();
  let told = 0;
  for (let request = 0; request < 60; request += 1) {
    const before = clock.told("pruning/nudged").length;
    const isTold = clock.reminder() !== undefined;
    if (clock.told("pruning/nudged").length > before) told += 1;
    clock.answer(isTold ? stored : { results: 1 });
  }
  expect(told).toBe(10);
});

test("a compaction is not followed by a reminder to compress its remainder", () => {
  const clock = new Clock();
  clock.share = 0.95;
  clock.user();
  clock.requests(2);
  clock.branch.compact("e1");
  clock.share = undefined;
  clock.user("Go on with it.");
  expect(clock.requests(1)).toEqual({});
  clock.share = 0.3;
  expect(clock.requests(20)).toEqual({});
});

test("a model whose calls all fail gets fewer and fewer reminders: three in forty requests", () => {
  const clock = new Clock();
  clock.share = 0.9;
  clock.user();
  const told: number[] = [];
  for (let request = 0; request < 40; request += 1) {
    const isTold = clock.reminder() !== undefined;
    if (isTold) told.push(request);
    clock.answer(isTold ? failed : { results: 1 });
  }
  expect(told).toEqual([0, 11, 32]);
  expect(clock.broken).toBe(3);
});

test("the defaults match the configuration's", () => {
  const { nudgeFrequency, iterationNudgeThreshold, nudgeDebounceTurns, nudgeForce, nudges } = defaultPruning;
  expect({ nudgeFrequency, iterationNudgeThreshold, nudgeDebounceTurns, nudgeForce, ...nudges }).toEqual({
    nudgeFrequency: 5,
    iterationNudgeThreshold: 15,
    nudgeDebounceTurns: 2,
    nudgeForce: "soft",
    maxFailures: 3,
    backoffMax: 8,
    breakerCooldown: 20,
  });
});
