import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { WireError } from "../../../../../protocol/errors.ts";
import type { OptimisationOptions } from "../../../../../protocol/optimisation/options.ts";
import { createValidator } from "../../../../../protocol/validation.ts";
import { SessionCosts } from "../../../../../server/context/cost/session-costs.ts";
import { unchecked } from "../../../../helpers/partial.ts";

const { signal } = new AbortController();

interface Facts {
  readonly optimisation?: OptimisationOptions;
  readonly hasPrices?: boolean;
  readonly file?: string;
  readonly ask?: () => Promise<unknown>;
}

/** The costs of a session whose part records its frames. */
function room({ optimisation, hasPrices = true, file = "/none/session.jsonl", ask }: Facts) {
  const told: unknown[] = [];
  const configured: OptimisationOptions[] = [];
  const costs = new SessionCosts(
    unchecked({ awake: async () => ({}) }),
    unchecked({
      record: {
        stored: { file, options: { optimisation } },
        hasPrices,
        facts: () => ({ model: { provider: "p", id: "m" } }),
      },
      parts: {
        ask: async (about: string) => {
          told.push(about);
          return await ask?.();
        },
        configuring: { configure: async (given: OptimisationOptions) => void configured.push(given) },
      },
      log: pino({ level: "silent" }),
    }),
  );
  return { costs, told, configured };
}

const started = JSON.stringify({
  ...{ type: "custom", id: "e1", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" },
  ...{ customType: "pi-rpcd.cost", data: { v: 1, kind: "phaseStart", label: "open" } },
});

test("an order that is refused does not turn the part on", async () => {
  const { costs, told, configured } = room({ hasPrices: false });
  const sessionId = "s";
  await expect(costs.order("cost/endPhase", { sessionId }, signal)).rejects.toMatchObject({ kind: "phase_not_open" });
  const budget = { sessionId, label: "a", budgetUsd: 1 };
  await expect(costs.order("cost/startPhase", budget, signal)).rejects.toMatchObject({ kind: "price_unknown" });
  await expect(costs.order("cost/setBudget", { sessionId, budgetUsd: 1 }, signal)).rejects.toMatchObject({
    kind: "price_unknown",
  });
  expect(configured).toEqual([]);
  expect(told).toEqual([]);
  await costs.order("cost/startPhase", { sessionId, label: "a" }, signal);
  expect(configured).toEqual([{ cost: { enabled: true } }]);
  expect(told).toEqual(["cost/startPhase"]);
});

test("an open phase is ended though the part is off", async () => {
  const directory = mkdtempSync(join(tmpdir(), "costs-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "session.jsonl");
  writeFileSync(file, `${started}\n`);
  const { costs, told, configured } = room({ file });
  const none = { sessionId: "s", label: "other" };
  await expect(costs.order("cost/endPhase", none, signal)).rejects.toMatchObject({ kind: "phase_not_open" });
  expect(configured).toEqual([]);
  await costs.order("cost/endPhase", { sessionId: "s", label: "open" }, signal);
  expect(configured).toEqual([{ cost: { enabled: true } }]);
  expect(told).toEqual(["cost/endPhase"]);
});

test.each(["child_exited", "link_failed"] as const)(
  "an order whose pi is lost (%s) may have been carried out",
  async (kind) => {
    const optimisation = { cost: { enabled: true } };
    const { costs } = room({ optimisation, ask: () => Promise.reject(new WireError(kind, "It ended.")) });
    const order = costs.order("cost/startPhase", { sessionId: "s", label: "a" }, signal);
    await expect(order).rejects.toMatchObject({ kind: "outcome_unknown" });
  },
);

test("a budget is checked against the prices if the layers result in another budget", () => {
  const was = (cost: NonNullable<OptimisationOptions["cost"]>) =>
    room({ optimisation: { cost }, hasPrices: false }).costs;
  const none = expect.objectContaining({ kind: "price_unknown" });
  expect(() => was({ enabled: false, budgetUsd: 1 }).requirePrices({ cost: { enabled: true } })).toThrow(none);
  expect(() => was({ enabled: true }).requirePrices({ cost: { budgetUsd: 3 } })).toThrow(none);
  was({ enabled: false }).requirePrices({ cost: { budgetUsd: 3 } });
  // An existing one does not prevent other configuration changes.
  was({ budgetUsd: 1 }).requirePrices({ masking: { enabled: true }, cost: { warnAt: 0.5 } });
});

test("a blank label is refused before it has any effect, and a label of 120 characters with two UTF-16 units each is accepted", () => {
  const findings = (label: string) => createValidator().params("cost/checkpoint", { sessionId: "s", label });
  expect(findings(" \t")).not.toEqual([]);
  expect(findings("🙂".repeat(121))).not.toEqual([]);
  expect(findings("🙂".repeat(120))).toEqual([]);
});
