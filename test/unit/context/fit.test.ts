import { describe, expect, test } from "vitest";
import { buildMessages } from "../../../context/document/build.ts";
import type { ContextItem, ContextTarget } from "../../../context/document/document.ts";
import { estimateMessage, estimateTokens } from "../../../context/document/estimate.ts";
import { fitContext, fitMessages, TRIMMED_EVENT_TYPE } from "../../../context/document/fit.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { BuiltMessage } from "../../../protocol/link-context.ts";
import { type Dice, dice, someItems, text } from "./items.ts";

const target: ContextTarget = { api: "a", provider: "p", id: "m", takesImages: true };

function tokensOf(items: readonly ContextItem[]): number {
  return items.reduce((sum, item) => sum + estimateTokens(item), 0);
}

function thrown(work: () => unknown): WireError {
  try {
    work();
  } catch (error) {
    if (error instanceof WireError) return error;
    throw error;
  }
  throw new Error("It was not refused.");
}

/** Ids of the calls without a result and of the results without a call. */
function unpaired(items: readonly ContextItem[]): readonly string[] {
  const calls = items.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id));
  const results = items.flatMap(({ role, toolCallId }) => (role === "toolResult" ? [toolCallId ?? ""] : []));
  return [...calls.filter((id) => !results.includes(id)), ...results.filter((id) => !calls.includes(id))];
}

function turn(name: string, result = "r".repeat(40)): readonly ContextItem[] {
  return [
    { role: "user", content: text(`ask ${name}`), timestamp: 1 },
    { role: "assistant", content: [], toolCalls: [{ id: name, name: "bash", arguments: {} }], timestamp: 2 },
    { role: "toolResult", toolCallId: name, toolName: "bash", content: text(result), timestamp: 3 },
    { role: "assistant", content: text(`told ${name}`), timestamp: 4 },
  ];
}

function contents(items: readonly ContextItem[]): readonly string[] {
  return items.map(({ content }) => content.map((part) => (part.type === "text" ? part.text : part.type)).join(""));
}

describe("a context of too many tokens", () => {
  const items = [...turn("one"), ...turn("two"), ...turn("three")];

  test("stays unchanged without a budget, within it, and if nothing may be left out", () => {
    const tokens = tokensOf(items);
    for (const options of [{ budget: null }, { budget: tokens }, { budget: 1, onOverflow: "keep" as const }]) {
      expect(fitContext(items, options)).toEqual({ items, tokens, dropped: { messages: 0, tokens: 0 } });
    }
  });

  test("is refused if it may not be trimmed, with the number of tokens that it needs", () => {
    const long = Array.from({ length: 2_000 }, (_, index) => turn(`t${index}`)).flat();
    const error = thrown(() => fitContext(long, { budget: 96_000, onOverflow: "error" }));
    expect(error.kind).toBe("context_over_budget");
    expect(error.message).toMatch(
      /^The context needs about \d{3} \d{3} tokens; the budget is 96 000\. Use onOverflow "trim" or raise maxTokens\.$/,
    );
    expect(error.data).toMatchObject({ tokens: tokensOf(long), budget: 96_000, retryable: false });
  });

  test("keeps its newest user spans whole, with a notice at the place of the removed ones", () => {
    const { items: kept, dropped } = fitContext(items, { budget: tokensOf(items) - 1 });
    expect(dropped).toEqual({ messages: 4, tokens: tokensOf(turn("one")) });
    expect(kept.slice(1)).toEqual([...turn("two"), ...turn("three")]);
    expect(kept[0]).toMatchObject({ role: "event", eventType: TRIMMED_EVENT_TYPE, meta: dropped, timestamp: 1 });
    expect(contents(kept)[0]).toBe(
      `4 earlier messages (about ${dropped.tokens} tokens) of this conversation were left out.`,
    );
  });

  test("adds to the count of an earlier notice", () => {
    const once = fitContext(items, { budget: tokensOf(items) - 1 });
    const twice = fitContext(once.items, { budget: tokensOf(once.items) - 1 });
    expect(twice.items.slice(1)).toEqual(turn("three"));
    expect(twice.items[0]?.meta).toEqual({ messages: 8, tokens: tokensOf([...turn("one"), ...turn("two")]) });
  });

  test("keeps every system item in its place", () => {
    const rule: ContextItem = { role: "system", content: text("A rule."), timestamp: 0 };
    const { items: kept } = fitContext([rule, ...turn("one", "word ".repeat(99)), rule, ...turn("two"), rule], {
      budget: tokensOf([rule, rule, rule, ...turn("two")]) + 60,
    });
    expect(kept.map(({ role }) => role).slice(0, 4)).toEqual(["system", "system", "event", "user"]);
    expect(kept.at(-1)).toEqual(rule);
    expect(kept).toHaveLength(8);
  });

  test("has the results of its newest span shortened, oldest first and no more than necessary", () => {
    const long = "word ".repeat(2_000);
    const [first, second] = [turn("one", long), turn("two", long).slice(1)];
    const span = [...turn("zero"), ...first, ...second];
    const budget = tokensOf([...first, ...second]) - 1_000;
    const { items: kept, dropped } = fitContext(span, { budget });
    expect(dropped.messages).toBe(4);
    expect(tokensOf(kept)).toBeLessThanOrEqual(budget);
    expect(tokensOf(kept)).toBeGreaterThan(budget - 100);
    const results = kept.filter(({ role }) => role === "toolResult");
    expect(contents(results)[0]).toMatch(/^word [\s\S]*\[… \d+ of 10000 characters left out …\][\s\S]*word $/);
    expect(contents(results)[1]).toBe(long);
  });

  test("is refused if its newest span does not fit in the shortest form", () => {
    const error = thrown(() => fitContext([...turn("one"), ...turn("two", "word ".repeat(999))], { budget: 60 }));
    expect(error.kind).toBe("context_over_budget");
    expect(error.message).toMatch(/the budget is 60\. Its newest turn alone does not fit: raise maxTokens\.$/);
  });

  test("has spans that events begin if there is no user message", () => {
    const pushed = [1, 2, 3].flatMap((nth): readonly ContextItem[] => [
      { role: "event", eventType: "push", content: text(`push ${nth}`), timestamp: nth },
      { role: "assistant", content: text(`answer ${nth} ${"word ".repeat(40)}`), timestamp: nth },
    ]);
    const { items: kept } = fitContext(pushed, { budget: tokensOf(pushed) - 1 });
    expect(contents(kept).slice(1)).toEqual(contents(pushed.slice(2)));
  });
});

describe("whatever the conversation and the budget", () => {
  function check(roll: Dice): "fits" | "refused" {
    const items = someItems(roll, roll(6) + 1);
    const budget = roll(tokensOf(items) + 50);
    let fitted: ReturnType<typeof fitContext>;
    try {
      fitted = fitContext(items, { budget });
    } catch (error) {
      expect(error).toMatchObject({ kind: "context_over_budget" });
      return "refused";
    }
    const { items: kept, tokens, dropped } = fitted;
    expect(tokensOf(kept)).toBe(tokens);
    expect(tokens).toBeLessThanOrEqual(budget);
    expect(unpaired(kept)).toEqual([]);
    const { messages } = buildMessages(kept, target);
    expect(messages.reduce((sum, message) => sum + estimateMessage(message), 0)).toBeLessThanOrEqual(tokensOf(kept));
    const systems = ({ role }: ContextItem): boolean => role === "system";
    expect(kept.filter(systems)).toEqual(items.filter(systems));
    if (dropped.messages > 0) {
      const suffix = items.filter((item) => !systems(item)).slice(dropped.messages);
      expect(suffix[0]?.role).toBe("user");
      const own = kept.filter((item) => !systems(item));
      expect(own[0]?.eventType).toBe(TRIMMED_EVENT_TYPE);
      expect(own.slice(1).map(({ nodeId }) => nodeId)).toEqual(suffix.map(({ nodeId }) => nodeId));
    }
    return "fits";
  }

  test("the budget holds, pairs stay together, and the newest spans are kept", () => {
    const outcomes = Array.from({ length: 600 }, (_, seed) => check(dice(seed)));
    expect(outcomes.filter((outcome) => outcome === "fits").length).toBeGreaterThan(150);
    expect(outcomes.filter((outcome) => outcome === "refused").length).toBeGreaterThan(20);
  });

  test("a hundred thousand items in one span are shortened as quickly as a few", () => {
    const span = [...turn("t0")];
    for (let index = 1; index < 33_000; index += 1) for (const item of turn(`t${index}`).slice(1)) span.push(item);
    const few = { ...span[2], content: text("word ".repeat(500)) } as ContextItem;
    const items = span.map((item, index) => (index === 2 || index === 98_000 ? few : item));
    const budget = tokensOf(items) - 500;
    const { items: kept, tokens } = fitContext(items, { budget });
    expect(kept).toHaveLength(items.length);
    expect(tokens).toBeLessThanOrEqual(budget);
    expect(kept[98_000]).toBe(items[98_000]);
    expect(buildMessages(kept, target).messages).toHaveLength(items.length);
  });

  test("messages are fitted like the items that they were built from", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const { messages } = buildMessages(someItems(dice(seed), 5), target);
      const needed = messages.reduce((sum, message) => sum + estimateMessage(message), 0);
      const half = fitMessages(messages, { budget: Math.floor(needed / 2), reserved: 10 });
      const tokens = half.messages.reduce((sum, message) => sum + estimateMessage(message), 0);
      expect(tokens).toBeLessThanOrEqual(Math.floor(needed / 2) - 10);
      expect(half.messages[0]).toMatchObject({ role: "custom", details: { meta: half.dropped } });
      expect(openIds(half.messages)).toEqual([]);
      const last = messages.at(-1);
      if (last?.role !== "toolResult") expect(half.messages.at(-1)).toEqual(last);
    }
  });
});

function openIds(messages: readonly BuiltMessage[]): readonly string[] {
  const open = new Set<string>();
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const { type, id } of message.content) if (type === "toolCall") open.add(String(id));
    } else if (message.role === "toolResult" && !open.delete(message.toolCallId))
      open.add(`no call: ${message.toolCallId}`);
  }
  return [...open];
}
