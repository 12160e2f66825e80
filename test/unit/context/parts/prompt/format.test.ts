import { expect, test } from "vitest";
import { estimateText } from "../../../../../context/document/estimate.ts";
import { markdownSection, sortedSection, withForm } from "../../../../../context/parts/prompt/format.ts";
import { wrapperReport } from "../../../../../context/parts/prompt/wrapper-report.ts";
import type { AgentMessage } from "../../../../../extension/pi-types.ts";

const sections = {
  preamble: "You are an expert.",
  tools: "<tools>\n- read: Reads.\n- bash: Runs.\n\nThere may be others.\n</tools>",
  rules: "<rules>\n- Use bash.\n  Always.\n- Be concise.\n</rules>",
  project_context:
    '<project_context>\nInstructions:\n\n<project_instructions path="/a/AGENTS.md">\n# Rules\nBe kind.\n</project_instructions>\n</project_context>',
  skills: "<skills>\n<available_skills>\n  <skill>\n    <name>x</name>\n  </skill>\n</available_skills>\n</skills>",
  addendum: "<addendum>\n# A heading\nText.\n</addendum>",
  cwd: "<cwd>\n/work\n</cwd>",
};
const head = { role: "system", content: "", sections, timestamp: 0 } as unknown as AgentMessage;
const user = { role: "user", content: "<cwd>\nHello.\n</cwd>", timestamp: 1 } as AgentMessage;

function formed(form: { isSorted?: boolean; sections?: "xml" | "markdown" }, messages = [head, user]) {
  return withForm(messages, { isSorted: false, sections: "xml", ...form });
}

test("flat sections become headings; skills, borders of context files and sections with their own headings stay", () => {
  const [made, second] = formed({ sections: "markdown" });
  expect((made as { sections: object }).sections).toEqual({
    preamble: "You are an expert.",
    tools: "## tools\n- read: Reads.\n- bash: Runs.\n\nThere may be others.",
    rules: "## rules\n- Use bash.\n  Always.\n- Be concise.",
    project_context: sections.project_context,
    skills: sections.skills,
    addendum: sections.addendum,
    cwd: "## cwd\n/work",
  });
  expect(second).toBe(user);
  expect(Object.keys((made as { sections: object }).sections)).toEqual(Object.keys(sections));
});

test("the sections that list by tools are the same for any order of registration", () => {
  const [made] = formed({ isSorted: true });
  const sorted = (made as { sections: Record<string, string> }).sections;
  expect(sorted["tools"]).toBe("<tools>\n- bash: Runs.\n- read: Reads.\n\nThere may be others.\n</tools>");
  expect(sorted["rules"]).toBe("<rules>\n- Be concise.\n- Use bash.\n  Always.\n</rules>");
  expect(sorted["project_context"]).toBe(sections.project_context);
  expect(formed({ isSorted: true }, [made as AgentMessage])[0]).toBe(made);
});

test("patches of sections are written like the prompt, and removals stay", () => {
  const patch = { role: "system", content: "", sections: { cwd: sections.cwd, skills: null }, timestamp: 2 };
  const [made] = formed({ sections: "markdown" }, [patch as unknown as AgentMessage]);
  expect((made as { sections: object }).sections).toEqual({ cwd: "## cwd\n/work", skills: null });
});

test("text in the right form is not touched", () => {
  const messages = [head, user];
  expect(formed({}, messages)).toBe(messages);
  const bare = [{ role: "system", content: "You are.", timestamp: 0 } as AgentMessage, user];
  expect(formed({ isSorted: true, sections: "markdown" }, bare)).toBe(bare);
});

test.for([
  ["no wrapper", "rules", "- b\n- a"],
  ["another name", "docs", "<docs>\n- b\n- a\n</docs>"],
  ["a text in front", "rules", "<rules>\nSome:\n- b\n- a\n</rules>"],
  ["no tools", "tools", "<tools>\n(none)\n\nThere may be others.\n</tools>"],
] as const)("a section with %s is not sorted", ([, name, text]) => {
  expect(sortedSection(name, text)).toBeUndefined();
});

test("thousands of unclosed or closed tags and of empty lines are read in a few passes", () => {
  let counted = 0;
  const prompt = "<a>\n".repeat(4_000) + "x\n</a>\n".repeat(4_000) + "<b>\n".repeat(4_000);
  wrapperReport(prompt, (text) => {
    counted += text.length;
    return text.length;
  });
  expect(counted).toBeLessThan(4 * prompt.length);
  expect(markdownSection("s", `<s>\nx${"\n".repeat(400_000)}y\n</s>`)).toMatch(/^## s\n/u);
  expect(markdownSection("s", `<s>\n${"<b \n".repeat(400_000)}y\n</s>`)).toBeUndefined();
});

test.for([
  ["is not closed", "<cwd>\n/work"],
  ["has another wrapper", "<x>\n/work\n</x>"],
  ["is a tag alone", "<cwd>\n</cwd>"],
  ["has a heading by underlines", "<cwd>\nTitle\n=====\n</cwd>"],
] as const)("a section that %s stays", ([, text]) => {
  expect(markdownSection("cwd", text)).toBeUndefined();
});

test("the tokens of wrappers and of wrapped text add up to the estimate of the whole prompt", () => {
  const prompt = Object.values(sections).join("\n\n");
  const { wrappers, total } = wrapperReport(prompt, estimateText);
  expect(total).toBe(estimateText(prompt));
  const all = [...wrappers.values()];
  expect(all.reduce((sum, { wrapper, content }) => sum + wrapper + content, 0)).toBe(total);
  expect([...wrappers.keys()].toSorted()).toEqual([
    "addendum",
    "available_skills",
    "cwd",
    "name",
    "none",
    "project_context",
    "project_instructions",
    "rules",
    "skill",
    "skills",
    "tools",
  ]);
  expect(all.every(({ wrapper, content }) => wrapper >= 0 && content >= 0)).toBe(true);
  expect(wrappers.get("cwd")).toMatchObject({ count: 1 });
  expect(wrapperReport("", estimateText).total).toBe(0);
});

test.for(["<a>\n<b>\ntext\n</a>\n</b>", "</a>", "a < b and c > d", "<a>\n".repeat(1_000), "<x1></x1>\n".repeat(100)])(
  "tags that wrap nothing are content: %j",
  (prompt) => {
    const { wrappers, total } = wrapperReport(prompt, estimateText);
    expect(total).toBe(estimateText(prompt));
    const sum = [...wrappers.values()].reduce((all, { wrapper, content }) => all + wrapper + content, 0);
    expect(sum).toBe(total);
  },
);
