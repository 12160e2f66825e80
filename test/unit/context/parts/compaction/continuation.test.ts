import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { describe, expect, test } from "vitest";
import { continuationOf } from "../../../../../context/parts/compaction/continuation.ts";
import { LastRequest } from "../../../../../context/parts/compaction/last-request.ts";
import { isContinuationCheaper, type SummaryRequests } from "../../../../../context/parts/compaction/summary-price.ts";
import { Branch } from "../cache/branch.ts";

const anthropic = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
const openai = { input: 1.25, output: 10, cacheRead: 0.125, cacheWrite: 0 };
const tiered = {
  ...openai,
  tiers: [{ inputTokensAbove: 90_000, input: 12.5, output: 10, cacheRead: 1.25, cacheWrite: 0 }],
};
const warm: SummaryRequests = {
  last: 100_000,
  cached: 99_500,
  instruction: 300,
  transcript: 30_000,
  summary: 2_000,
  thinking: 0,
};

test.for<[string, Partial<SummaryRequests>, typeof anthropic | undefined, boolean]>([
  ["a warm cache at Anthropic's prices", {}, anthropic, true],
  ["a warm cache at OpenAI's prices", {}, openai, true],
  ["a transcript of a tenth", { transcript: 10_000 }, anthropic, false],
  ["a transcript a little longer than that", { transcript: 12_000 }, anthropic, true],
  ["a cold cache", { cached: 0 }, anthropic, false],
  ["a cold cache and a transcript that is nearly all of it", { cached: 0, transcript: 99_000 }, anthropic, false],
  ["half of it in the cache", { cached: 50_000 }, anthropic, false],
  ["half of it in the cache and a long transcript", { cached: 50_000, transcript: 90_000 }, anthropic, true],
  ["more in the cache than the request has", { cached: 1e9, transcript: 10_000 }, anthropic, false],
  ["thinking that costs more than the cache saves", { transcript: 20_000, thinking: 2_000 }, anthropic, false],
  ["thinking that costs less", { transcript: 30_000, thinking: 2_000 }, anthropic, true],
  ["a tier that the last request is in and the transcript is not", {}, tiered, false],
  ["a tier that both are in", { transcript: 95_000 }, tiered, true],
  ["no price for reading", {}, { ...anthropic, cacheRead: 0 }, false],
  ["no prices", {}, undefined, false],
])("%s", ([, tokens, cost, isCheaper]) => {
  expect(isContinuationCheaper({ ...warm, ...tokens }, cost)).toBe(isCheaper);
});

const instruction = { text: "Summarise.", maxTokens: 1_000, isThinking: false, isPassing: () => false };
const mark = { cache_control: { type: "ephemeral" } };

describe("a request with an instruction", () => {
  test("keeps the marks of the one before, has none of its own, and does not change it", () => {
    const marked = { role: "user", content: [{ type: "text", text: "Hello.", ...mark }] };
    const payload = {
      model: "m",
      system: [{ type: "text", text: "Be good.", ...mark }],
      messages: [marked],
      max_tokens: 9_000,
    };
    const before = structuredClone(payload);
    expect(continuationOf(payload, "anthropic-messages", instruction)?.payload).toEqual({
      ...before,
      messages: [marked, { role: "user", content: "Summarise." }],
      max_tokens: 1_000,
    });
    expect(payload).toEqual(before);
  });

  test("leaves out what only that request had, and stays before the effort of the answer", () => {
    const effort = { role: "system", content: [], output_config: { effort: "high" } };
    const patch = { role: "system", content: [{ type: "text", text: "New rules.", ...mark }] };
    const messages = [{ role: "user", content: "Hello." }, patch, { role: "user", content: "Compress now." }, effort];
    const isPassing = (message: unknown): boolean => JSON.stringify(message).includes("Compress");
    const made = continuationOf({ messages }, "anthropic-messages", { ...instruction, isPassing });
    expect(made?.payload["messages"]).toEqual([messages[0], patch, { role: "user", content: "Summarise." }, effort]);
  });

  test("has room for thinking, up to the limit of the one before", () => {
    const limitOf = (fields: object, isThinking = false) => {
      const made = continuationOf({ messages: [], ...fields }, "anthropic-messages", { ...instruction, isThinking });
      return made?.payload["max_tokens"];
    };
    expect(limitOf({ max_tokens: 32_000, thinking: { type: "enabled", budget_tokens: 10_000 } }, true)).toBe(11_000);
    expect(limitOf({ max_tokens: 32_000, thinking: { type: "adaptive" } }, true)).toBe(9_192);
    expect(limitOf({ max_tokens: 32_000, thinking: { type: "disabled" } })).toBe(1_000);
    expect(limitOf({ max_tokens: 500 })).toBe(500);
    expect(limitOf({})).toBeUndefined();
  });

  test("exists for the APIs whose requests only grow at their end", () => {
    const input = [{ role: "user", content: [{ type: "input_text", text: "Hello." }] }];
    const responses = continuationOf({ input, max_output_tokens: 2_000 }, "openai-responses", instruction);
    expect(responses?.payload).toEqual({
      input: [...input, { role: "user", content: [{ type: "input_text", text: "Summarise." }] }],
      max_output_tokens: 1_000,
    });
    expect(continuationOf({ contents: [] }, "google-generative-ai", instruction)).toBeUndefined();
    expect(continuationOf({ messages: [] }, "mistral-conversations", instruction)).toBeUndefined();
    expect(continuationOf({ input: "Hello." }, "openai-responses", instruction)).toBeUndefined();
  });
});

test.for<[unknown, boolean]>([
  [undefined, true],
  ["auto", true],
  [{ type: "auto" }, true],
  ["none", true],
  [null, true],
  ["required", false],
  [{ type: "any" }, false],
  [{ type: "function", function: { name: "bash" } }, false],
])("a request whose tool_choice is %j can ask for a text: %s", ([choice, isSent]) => {
  const payload = { messages: [], tool_choice: choice };
  expect(continuationOf(payload, "anthropic-messages", instruction) !== undefined).toBe(isSent);
});

describe("a service that drops the thinking before a message of the user", () => {
  const asked = { role: "user", content: "Hello." };
  const called = { type: "tool_use", id: "1", name: "bash", input: {} };
  const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "ok" }] };
  const thought = { role: "assistant", content: [{ type: "thinking", thinking: "Hm.", signature: "s" }, called] };
  const enabled = { thinking: { type: "enabled", budget_tokens: 2_000 } };

  test.for<[string, string, object, boolean]>([
    ["thinking since then", "anthropic-messages", { ...enabled, messages: [asked, thought, result] }, false],
    ["thinking before that only", "anthropic-messages", { ...enabled, messages: [thought, result, asked] }, true],
    [
      "adaptive thinking",
      "anthropic-messages",
      { thinking: { type: "adaptive" }, messages: [asked, thought, result] },
      true,
    ],
    ["reasoning items", "openai-responses", { input: [asked, { type: "reasoning", summary: [] }] }, false],
    [
      "reasoning in a field",
      "openai-completions",
      { messages: [asked, { role: "assistant", reasoning_content: "Hm." }] },
      false,
    ],
    ["no reasoning", "openai-completions", { messages: [asked, { role: "assistant", reasoning_content: "" }] }, true],
  ])("gets the request again only if that changes nothing: %s", ([, api, payload, isSent]) => {
    expect(continuationOf({ ...payload }, api, instruction) !== undefined).toBe(isSent);
  });
});

describe("the last request", () => {
  const payload = { model: "m", messages: [{ role: "user", content: "Go." }] };

  /** A boundary at which other extensions have proposed these entries. */
  function at(branch: Branch, ctx = branch.context(), ...types: readonly string[]): Parameters<LastRequest["upTo"]>[1] {
    return { ctx, state: { entries: types.map((type) => ({ type, targetId: "e1", replacement: null })) as never } };
  }

  /** A request and its answer, after these changes of the branch. */
  function asked(branch = new Branch()) {
    const first = branch.prompt();
    branch.call();
    const leaf = branch.prompt();
    const last = new LastRequest();
    last.listed(branch.context());
    last.sent(payload);
    return { branch, first, leaf, last };
  }

  test("has the entries before it, with the tokens that its answer reported", () => {
    const { branch, first, leaf, last } = asked();
    expect(last.upTo(leaf, at(branch))).toBeUndefined();
    const answered = branch.answer();
    const found = { payload, tokens: 10_100, cachedTokens: 10_100 };
    expect(last.upTo(leaf, at(branch))).toEqual(found);
    expect(last.upTo(first, at(branch))).toEqual(found);
    expect(last.upTo(answered, at(branch))).toBeUndefined();
  });

  test("is read from the cache up to its last mark, or not at all if the service does not cache", () => {
    const { branch, leaf, last } = asked();
    branch.answer();
    last.sent({ messages: [{ role: "user", content: [{ type: "text", text: "Go.", ...mark }] }] });
    expect(last.upTo(leaf, at(branch))).toMatchObject({ tokens: 10_100, cachedTokens: 10_000 });
    const bare = asked();
    bare.branch.answer({ usage: { input: 9_000, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 9_001 } });
    expect(bare.last.upTo(bare.leaf, at(bare.branch))).toMatchObject({ tokens: 9_000, cachedTokens: 0 });
  });

  test.for<[string, (branch: Branch, last: LastRequest, first: string) => ExtensionContext | void]>([
    [
      "an entry was edited, which can hide a secret",
      (branch) => void branch.append("context_edit", { targetId: "e1" }),
    ],
    ["a compaction came", (branch) => void branch.append("compaction")],
    ["the session is on another branch", (branch, _last, first) => branch.goTo(first)],
    ["another model is used", (branch) => branch.context({ id: "other" })],
    ["another request was listed and not sent", (branch, last) => last.listed(branch.context())],
    ["it was forgotten", (_branch, last) => last.forget()],
  ])("is not used if %s", ([, change]) => {
    const { branch, first, leaf, last } = asked();
    branch.answer();
    expect(last.upTo(leaf, at(branch))).toBeDefined();
    const ctx = change(branch, last, first) ?? branch.context();
    expect(last.upTo(first, at(branch, ctx))).toBeUndefined();
  });

  test("is not used if another extension edits an entry at the same boundary, which can hide a secret", () => {
    const { branch, leaf, last } = asked();
    branch.answer();
    expect(last.upTo(leaf, at(branch, branch.context(), "custom"))).toBeDefined();
    expect(last.upTo(leaf, at(branch, branch.context(), "custom", "context_edit"))).toBeUndefined();
  });

  test("is not replaced by a request that keeps its cache warm, nor by one that no list preceded", () => {
    const { branch, leaf, last } = asked();
    branch.answer();
    last.sent({ ...payload, max_tokens: 1 });
    // The least that pi asks for at this API.
    last.sent({ input: [], max_output_tokens: 16 });
    expect(last.upTo(leaf, at(branch))?.payload).toBe(payload);
    last.forget();
    last.sent(payload);
    expect(last.upTo(leaf, at(branch))).toBeUndefined();
  });
});
