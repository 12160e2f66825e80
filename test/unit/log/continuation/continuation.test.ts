import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Plant } from "./daemon-model.ts";
import { simulate } from "./simulation.ts";

// CONTINUATION_KILLS=20000 runs many more.
const wanted = Number(process.env["CONTINUATION_KILLS"] ?? 200);
const firstSeed = Number(process.env["CONTINUATION_SEED"] ?? 1);
const killsOfSeed = 20;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] }));
afterEach(() => void vi.useRealTimers());

// Thousands of kills take minutes.
const timeout = 60 * 60_000;

test("no number of a log changes, and each client gets each once, however often the daemon is killed", {
  timeout,
}, async () => {
  const sum = { seeds: 0, kills: 0, killedInReplay: 0, mismatches: 0, told: 0 };
  for (let seed = firstSeed; sum.kills < wanted; seed += 1) {
    const { errors, ...outcome } = await simulate(seed, killsOfSeed);
    expect(errors, `seed ${seed}`).toEqual([]);
    sum.seeds += 1;
    for (const [name, value] of Object.entries(outcome)) sum[name as keyof typeof outcome] += value;
  }
  if (process.env["CONTINUATION_KILLS"] !== undefined) process.stdout.write(`${JSON.stringify(sum)}\n`);
  expect(sum.killedInReplay).toBeGreaterThan(0);
});

test.each<Plant>([
  "own notification while replaying",
  "own notifications are not looked for",
  "kept past what is open",
  "events are told before they are written",
  "receipts are forgotten while replaying",
])("the simulation finds a planted fault: %s", async (plant) => {
  const found: string[] = [];
  for (let seed = 1; found.length === 0 && seed <= 200; seed += 1) {
    const { errors } = await simulate(seed, killsOfSeed, plant);
    found.push(...errors);
  }
  expect(found).not.toEqual([]);
});
