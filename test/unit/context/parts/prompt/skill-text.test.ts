import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimateText } from "../../../../../context/document/estimate.ts";
import {
  beginsWithBlock,
  bodyOf,
  detailOf,
  digestOf,
  maxDetailChars,
  pointerTo,
  shortUseOf,
  skillText,
} from "../../../../../context/parts/prompt/skill-text.ts";
import { commandOf } from "../../../../../context/parts/prompt/skills.ts";

const path = "/home/user/.pi/agent/skills/review/SKILL.md";
const content = `---\r\nname: review\r\n---\r\n\r\n# Review\r\n\r\nRead.\r\n\r\n## Tests\r\n\r\n${"Run them all. ".repeat(800)}\n\n### Deep\n\nmore\n\n## End\n`;
const skill = skillText("review", "How changes are reviewed.", path, content);
const digest = { tokens: 200, tokensOf: estimateText, tool: "get_skill_detail" };

test.each([
  ["\uFEFFtext\r\nmore ", "text\nmore"],
  ["---\na: 1\n---\nbody\n", "body"],
  ["---\nnever closed", "---\nnever closed"],
  ["", ""],
])("the front matter of %j is cut off", (given, body) => expect(bodyOf(given)).toBe(body));

test.each([
  ["/skill:x", { name: "x", rest: "", isWhole: false }],
  ["/skill:x  a b ", { name: "x", rest: "a b", isWhole: false }],
  ["/skill!x a", { name: "x", rest: "a", isWhole: true }],
  ["/skill:x\ny z", { name: "x\ny", rest: "z", isWhole: false }],
  ["/skill:", { name: "", rest: "", isWhole: false }],
  [" /skill:x", undefined],
  ["/skills", undefined],
])("%j is read as pi reads it", (text, command) => expect(commandOf(text)).toEqual(command));

describe("a pointer", () => {
  test.each(["message", "prompt"] as const)("to the text in the %s costs less than sixty tokens", (where) => {
    const pointer = pointerTo(skill, where, estimateText);
    expect(estimateText(pointer)).toBeLessThan(60);
    expect(pointer).toContain(path);
    expect(shortUseOf(`${pointer}\n\nrest`)).toEqual({ name: "review", kind: "pointer", end: pointer.length });
    expect(beginsWithBlock(pointer, skill.block)).toBe(false);
    expect(estimateText(pointerTo({ ...skill, path: `/${"deep/".repeat(60)}x` }, where, estimateText))).toBeLessThan(
      60,
    );
  });
});

describe("a digest", () => {
  test("of a long skill stays within its tokens, and names its subject, its headings and how to get the text", () => {
    const text = digestOf(skill, digest);
    expect(estimateText(text)).toBeLessThanOrEqual(200);
    for (const part of [skill.description, "# Review\n## Tests\n### Deep\n## End", "Read.", "get_skill_detail"])
      expect(text).toContain(part);
    expect(shortUseOf(text)).toEqual({ name: "review", kind: "digest", end: text.length });
    expect(shortUseOf(skill.block)).toBeUndefined();
  });

  test("names the file if the session does not have the tool", () => {
    expect(digestOf(skill, { ...digest, tool: undefined })).toContain("read the file");
  });

  test("stays within its tokens and is well-formed for any skill", () => {
    const line = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("# H", "", "```", "😀".repeat(40)));
    const any = fc.record({
      description: fc.string({ unit: "grapheme", maxLength: 2_000 }),
      lines: fc.array(line, { maxLength: 40 }),
      tokens: fc.integer({ min: 50, max: 400 }),
    });
    fc.assert(
      fc.property(any, ({ description, lines, tokens }) => {
        const made = digestOf(skillText("x", description, "/s/x.md", lines.join("\n")), { ...digest, tokens });
        expect(estimateText(made)).toBeLessThanOrEqual(tokens);
        if (description.isWellFormed() && lines.every((one) => one.isWellFormed()))
          expect(made.isWellFormed()).toBe(true);
      }),
    );
  });
});

describe("the detail of a skill", () => {
  test("is its whole text, or a section with its subsections", () => {
    expect(detailOf(skill, undefined)).toContain(skill.body);
    expect(detailOf(skill, "## tests ")).toMatch(/^## Tests\n[\s\S]*### Deep\n\nmore$/);
  });

  test("that does not exist is refused with the list of headings", () => {
    expect(() => detailOf(skill, "Nope")).toThrow('has no section "Nope". It has: Review · Tests · Deep · End');
    expect(() => detailOf(skillText("e", "", "/e", "text"), "A")).toThrow("It has none.");
  });

  test("is cut at a line's end if it is too long, and says so", () => {
    const huge = skillText("huge", "", "/huge", "😀 line of text\n".repeat(20_000));
    const text = detailOf(huge, undefined);
    expect(text.length).toBeLessThan(maxDetailChars + 200);
    expect(text).toMatch(/line of text\n\n\[Cut at \d+ of \d+ characters: ask for a section, or read \/huge\.\]$/);
    expect(detailOf(skillText("one", "", "/o", "😀".repeat(60_000)), undefined).isWellFormed()).toBe(true);
  });
});
