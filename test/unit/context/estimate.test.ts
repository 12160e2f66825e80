import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { buildMessages } from "../../../context/document/build.ts";
import type { ContextItem, ContextTarget } from "../../../context/document/document.ts";
import { estimateMessage, estimateText, estimateTokens, flattenedTokens } from "../../../context/document/estimate.ts";
import { dice, someItems, text } from "./items.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const target: ContextTarget = { api: "a", provider: "p", id: "m", takesImages: true };

describe("the tokens of a text", () => {
  /** Counted with the encodings o200k_base and cl100k_base; the greater is listed here. */
  const counted: readonly (readonly [name: string, sample: string, tokens: number])[] = [
    [
      "prose",
      "The committee met on Thursday and decided, after a long discussion about the unexpected costs of the previous year, to postpone the construction of the library until further notice.",
      32,
    ],
    [
      "code",
      "export function sum(values: readonly number[]): number {\n  let total = 0;\n  for (const value of values) total += value;\n  return total;\n}\n",
      34,
    ],
    [
      "JSON",
      '{"id":"c1","name":"bash","arguments":{"command":"expr 2 + 2","timeout":30},"flags":[true,false,null]}',
      31,
    ],
    [
      "a log",
      "2026-11-21T18:25:17.031Z INFO [worker-3] request id=9f86d081884c7d65 took 42ms status=200\n2026-11-21T18:25:18.977Z WARN [worker-1] retry 2 of 5 in 1500ms\n",
      75,
    ],
    ["hexadecimal digits", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 43],
    ["base64", "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAB1q3Zk9QmXw2sL7Rt0", 52],
    ["Chinese", "人工智能是计算机科学的一个分支，它企图了解智能的实质，并生产出一种新的智能机器。", 43],
    ["Japanese", "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。", 39],
    ["Korean", "인공지능은 인간의 학습능력과 추론능력을 인공적으로 구현하려는 컴퓨터 과학의 한 분야이다.", 49],
    ["Russian", "Искусственный интеллект выполняет творческие функции, которые считаются прерогативой человека.", 45],
    ["Hindi", "कृत्रिम बुद्धिमत्ता मशीनों द्वारा प्रदर्शित बुद्धि है।", 56],
    [
      "German",
      "Künstliche Intelligenz ist ein Teilgebiet der Informatik, das sich mit der Automatisierung intelligenten Verhaltens befasst.",
      33,
    ],
    ["pictographs", "😀🎉🚀🔥✅❌", 15],
    ["a table of lines", "┌──────┬──────┐\n│ a    │ b    │\n├──────┼──────┤\n", 30],
    ["numbers", "7919, 15838, 23757, 31676, 39595, 47514, 55433, 63352", 30],
    ["punctuation", "!@#$%^&*()_+{}|:<>?~`-=[]\\;',./", 21],
  ];

  test.each(counted)("are not estimated much below the services' counts: %s", (_, sample, tokens) => {
    expect(estimateText(sample)).toBeGreaterThanOrEqual(0.85 * tokens);
  });

  /** Each of these has at least this many tokens. */
  test.each([
    ["Braille", "\u2801\u2803\u2809\u2819", 3],
    ["Tibetan", "བོད་སྐད་", 2],
    ["combining marks", "\u0301\u0302\u0316\u0317", 1.5],
  ])("are not a fraction of a character's: %s", (_, sample, each) => {
    expect(estimateText(sample.repeat(100))).toBeGreaterThanOrEqual(each * 100 * sample.length);
  });

  test("of English and of code are not estimated far above it either", () => {
    for (const [name, sample, tokens] of counted) {
      if (name === "prose" || name === "code") expect(estimateText(sample)).toBeLessThan(1.6 * tokens);
    }
  });

  test("are never less than pi's estimate", () => {
    for (const sample of ["", " ".repeat(4_001), "a".repeat(4_001), "\n".repeat(77)]) {
      expect(estimateText(sample)).toBeGreaterThanOrEqual(sample.length / 4);
    }
  });

  test("grow only with its length: a text that is ten times as long has about ten times as many", () => {
    const source = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
    expect(estimateText(source.repeat(10)) / estimateText(source)).toBeCloseTo(10, 1);
  });
});

describe("the tokens of an item", () => {
  test("are never less than those of the message that is built from it", () => {
    const native: readonly ContextItem[] = [
      { type: "compaction", tokensBefore: 1 },
      { type: "bashExecution", command: "ls -la /a/long/path ".repeat(20), exitCode: 1 },
      { type: "branch_summary", fromId: "1" },
      { type: "custom_message", customType: "x", display: true },
    ].map((meta, index) => ({
      role: "event",
      eventType: ["pi.compaction", "pi.bash", "pi.branchSummary", "pi.custom:x"][index] ?? "",
      content: text("What there was."),
      meta: { native: meta },
      timestamp: 1,
    }));
    const odd: ContextItem = { role: "event", eventType: "a\n\n\nb \r c", content: text("x"), timestamp: 1 };
    const blocks: ContextItem = {
      role: "assistant",
      content: text("short"),
      blocks: [{ type: "text", text: "long ".repeat(99) }],
      model: target,
      timestamp: 1,
    };
    const all = [odd, blocks, ...native, ...Array.from({ length: 40 }, (_, seed) => someItems(dice(seed), 4)).flat()];
    for (const item of all) {
      const [message] = buildMessages([item], target).messages;
      if (message !== undefined) expect(estimateMessage(message)).toBeLessThanOrEqual(estimateTokens(item));
    }
  });

  test("include the arguments of calls, however deep, and images", () => {
    let deep: Record<string, unknown> = { end: "word ".repeat(100) };
    for (let level = 0; level < 100_000; level += 1) deep = { in: deep };
    const call: ContextItem = {
      role: "assistant",
      content: [],
      toolCalls: [{ id: "1", name: "t", arguments: deep }],
      timestamp: 1,
    };
    expect(estimateTokens(call)).toBeGreaterThan(200_000);
    const image: ContextItem = {
      role: "user",
      content: [{ type: "image", data: "AA==", mimeType: "image/png" }],
      timestamp: 1,
    };
    expect(estimateTokens(image)).toBeGreaterThan(1_200);
  });

  test("of a flattened conversation count the same texts, with a tag for each", () => {
    const items = someItems(dice(7), 5);
    const words = items.flatMap(({ content }) => content.map((part) => (part.type === "text" ? part.text : "")));
    expect(flattenedTokens(items)).toBeGreaterThan(words.reduce((sum, word) => sum + estimateText(word), 0));
    expect(flattenedTokens([])).toBeLessThan(10);
  });
});
