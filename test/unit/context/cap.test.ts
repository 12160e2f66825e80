import { describe, expect, test } from "vitest";
import { capContent, capToolResults, textLength } from "../../../context/document/cap.ts";
import type { ContextItem } from "../../../context/document/document.ts";
import { dice, someText, text } from "./items.ts";

function result(toolName: string, content: ContextItem["content"]): ContextItem {
  return { role: "toolResult", toolCallId: "c", toolName, content, timestamp: 1 };
}

function whole(content: ContextItem["content"]): string {
  return content.map((part) => (part.type === "text" ? part.text : `<${part.type}>`)).join("");
}

describe("the results of tools", () => {
  const long = "0123456789".repeat(5_120);

  test("of any length stay unchanged if nothing caps them", () => {
    const items = [result("bash", text(long))];
    expect(capToolResults(items, {})).toBe(items);
    expect(capToolResults(items, { maxChars: null, perTool: { read: 200 } })).toEqual(items);
    expect(capToolResults(items, { maxChars: long.length })).toEqual(items);
  });

  test("are cut to head and tail, with a mark that names the original length", () => {
    const [cut] = capToolResults([result("bash", text(long))], { maxChars: 300 });
    const told = whole(cut?.content ?? []);
    expect(told).toMatch(/^0123[\s\S]*\n\[… 509\d\d of 51200 characters left out …\]\n[\s\S]*6789$/);
    expect(told.length).toBeLessThanOrEqual(300);
    expect(told.length).toBeGreaterThan(290);
  });

  test("have a cap for each tool, which takes precedence over the general one", () => {
    const items = [result("bash", text(long)), result("read", text(long)), result("__proto__", text(long))];
    const capped = capToolResults(items, { maxChars: 1_000, perTool: { bash: 400, read: null } });
    const lengths = capped.map(({ content }) => textLength(content));
    expect(lengths[0]).toBeLessThanOrEqual(400);
    expect(lengths[1]).toBe(long.length);
    expect(lengths[2]).toBeLessThanOrEqual(1_000);
    expect(lengths[2]).toBeGreaterThan(900);
  });

  test("of a tool whose name had to be repaired are capped under the original name", () => {
    const [cut] = capToolResults([result("files_read", text(long))], { perTool: { "files/read": 300 } });
    expect(textLength(cut?.content ?? [])).toBeLessThanOrEqual(300);
  });

  test("are the only capped items: not what was said, called or reported", () => {
    const items: readonly ContextItem[] = (["user", "assistant", "event", "system"] as const).map((role) => ({
      role,
      content: text(long),
      timestamp: 1,
    }));
    expect(capToolResults(items, { maxChars: 200 })).toEqual(items);
  });

  test("keep their images, and texts in several parts are cut as one", () => {
    const image = { type: "image" as const, data: "AA==", mimeType: "image/png" };
    const parts = [...text("a".repeat(400)), image, ...text("b".repeat(400)), ...text("c".repeat(400))];
    const cut = capContent(parts, 300);
    expect(cut.filter(({ type }) => type === "image")).toEqual([image]);
    expect(whole(cut)).toMatch(/^a+\n\[… 9\d\d of 1200 characters left out …\]\n<image>c+$/);
    expect(textLength(cut)).toBeLessThanOrEqual(300);
  });

  test("that are cut again still name the original length", () => {
    const twice = whole(capContent(capContent(text(long), 2_000), 400));
    expect(twice.match(/characters left out/g)).toHaveLength(1);
    expect(twice).toMatch(/\[… 508\d\d of 51200 characters left out …\]/);
  });

  test("with any characters never exceed the cap, and no character is cut in two", () => {
    for (let seed = 0; seed < 300; seed += 1) {
      const roll = dice(seed);
      const parts = Array.from({ length: roll(4) + 1 }, () => ({ type: "text" as const, text: someText(roll, 150) }));
      const max = 200 + roll(600);
      const cut = capContent(parts, max);
      expect(textLength(cut)).toBeLessThanOrEqual(Math.max(max, 0));
      expect(whole(cut).isWellFormed()).toBe(true);
      if (textLength(parts) <= max) expect(cut).toBe(parts);
      else expect(whole(parts).startsWith(whole(cut).split("\n[…")[0] ?? "?")).toBe(true);
    }
  });
});
