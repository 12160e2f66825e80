import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { PiModel } from "../../../../protocol/pi-data.ts";
import { budgetOf, Targets } from "../../../../server/context/targets.ts";
import type { StoredOptions } from "../../../../server/store/stored-session.ts";
import { patience } from "../../../helpers/patience.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "targets-"));
});
afterEach(() => rmSync(root, { recursive: true }));

const { signal } = new AbortController();
const sonnet = {
  provider: "anthropic",
  id: "sonnet",
  api: "anthropic-messages",
  input: ["text", "image"],
  contextWindow: 200_000,
};
const plain = { provider: "local", id: "org/plain", api: "openai-completions", input: ["text"], contextWindow: 0 };

function targets(state: unknown = { model: plain, thinkingLevel: "high" }) {
  const asked: StoredOptions[] = [];
  const found = new Targets({
    env: { PI_CODING_AGENT_DIR: root },
    models: () => Promise.resolve([sonnet, plain] as unknown as PiModel[]),
    probe: ({ options }) => {
      asked.push(options);
      return Promise.resolve(state);
    },
    program: () => Promise.resolve("pi"),
    maxKnown: 2,
  });
  const find = (options: StoredOptions) => found.find({ cwd: root, options }, signal);
  return { find, asked };
}

test("a fully named model is taken from pi's list, and any other from a pi that is started with the options", async () => {
  const { find, asked } = targets();
  expect(await find({ model: "anthropic/sonnet" })).toMatchObject({
    model: "anthropic/sonnet",
    target: {
      api: "anthropic-messages",
      provider: "anthropic",
      id: "sonnet",
      takesImages: true,
      contextWindow: 200_000,
    },
  });
  expect((await find({ model: "local/org/plain" })).target).toEqual({
    ...{ api: "openai-completions", provider: "local", id: "org/plain", takesImages: false },
  });
  expect(asked).toEqual([]);
  const pattern = await find({ model: "pla*:high" });
  expect(pattern).toMatchObject({ model: "local/org/plain", thinking: "high" });
  expect(await find({})).not.toHaveProperty("thinking");
  expect(asked).toEqual([{ model: "pla*:high" }, {}]);
});

test("pi's answer is valid until its settings or models change", async () => {
  const { find, asked } = targets();
  await find({});
  await find({ name: "of no importance" });
  expect(asked).toHaveLength(1);
  writeFileSync(join(root, "models.json"), "{}");
  await find({});
  expect(asked).toHaveLength(2);
  await find({ model: "a*" });
  await find({ model: "b*" });
  await find({});
  expect(asked).toHaveLength(5);
});

test("a pi without a model is refused by name", async () => {
  for (const model of [undefined, null, { provider: "p", id: "unknown" }]) {
    await expect(targets({ model }).find({})).rejects.toMatchObject({ kind: "model_not_found" });
  }
});

test("the budget is 80 % of what the window and pi's settings leave", async () => {
  const { find } = targets();
  const reserve = async (options: StoredOptions = {}) =>
    (await find({ model: "anthropic/sonnet", ...options })).budget.reserveTokens;
  expect(await reserve()).toBe(16_384);
  const settings = {
    compaction: { reserveTokens: 1_000, modelOverrides: { "anthropic/sonnet": { keepRecentTokens: 1 } } },
  };
  writeFileSync(join(root, "settings.json"), JSON.stringify(settings));
  expect(await reserve()).toBe(1_000);
  mkdirSync(join(root, ".pi"));
  const project = { compaction: { modelOverrides: { "anthropic/sonnet": { reserveTokens: 50_000 } } } };
  writeFileSync(join(root, ".pi", "settings.json"), JSON.stringify(project));
  // The project's settings count only if it is trusted.
  expect(await reserve()).toBe(1_000);
  expect(await reserve({ approve: true })).toBe(50_000);
  expect(budgetOf(undefined, { contextWindow: 200_000, reserveTokens: 50_000 })).toEqual({
    budget: 120_000,
    threshold: 150_000,
  });
  expect(budgetOf(null, { contextWindow: 200_000 })).toEqual({ budget: null, threshold: 183_616 });
  expect(budgetOf("auto", {})).toEqual({ budget: null });
  expect(budgetOf(5, {})).toEqual({ budget: 5 });
  writeFileSync(join(root, "settings.json"), '{"compaction": {"reserveTokens": "many"}, ');
  expect(await reserve()).toBe(16_384);
});

test("concurrent questions wait for one pi, which is ended when the last caller has left", async () => {
  const answers: { readonly give: (state: unknown) => void; readonly signal: AbortSignal }[] = [];
  const found = new Targets({
    env: { PI_CODING_AGENT_DIR: root },
    models: () => Promise.resolve([]),
    probe: (_request, until) =>
      new Promise((resolve, reject) => {
        answers.push({ give: resolve, signal: until });
        until.addEventListener("abort", () => reject(until.reason));
      }),
    program: () => Promise.resolve("pi"),
    maxKnown: 2,
  });
  const ask = (until: AbortSignal) => found.find({ cwd: root, options: {} }, until);
  const leaving = new AbortController();
  const [first, second, third] = [ask(signal), ask(leaving.signal), ask(signal)];
  await vi.waitFor(() => expect(answers).toHaveLength(1), patience);
  leaving.abort(new Error("left"));
  await expect(second).rejects.toThrow("left");
  expect(answers[0]?.signal.aborted).toBe(false);
  answers[0]?.give({ model: plain });
  expect((await first).model).toBe("local/org/plain");
  expect((await third).model).toBe("local/org/plain");

  writeFileSync(join(root, "models.json"), "{}");
  const alone = new AbortController();
  const last = ask(alone.signal);
  await vi.waitFor(() => expect(answers).toHaveLength(2), patience);
  alone.abort(new Error("left too"));
  await expect(last).rejects.toThrow("left too");
  expect(answers[1]?.signal.aborted).toBe(true);
});
