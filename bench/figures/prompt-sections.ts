import { encode } from "gpt-tokenizer";
import { estimateText } from "../../context/document/estimate.ts";
import { type ContextFile, renderContextFiles } from "../../context/parts/prompt/project-context.ts";
import { shortenContextFiles } from "../../context/parts/prompt/shorten.ts";
import { digestOf, pointerTo, type SkillText, skillText } from "../../context/parts/prompt/skill-text.ts";
import { defaultOptimisation, SKILL_TOOL } from "../../protocol/optimisation/config.ts";
import { Random } from "../../test/soak/random.ts";
import type { Figure, Row } from "../lib/figure.ts";
import { prose } from "../lib/traces/words.ts";

const seed = 20_260_101;
const levels = [1, 2, 3, 4] as const;
const sectionsOfFile = 8;
const paragraphChars = 420;
/** The share of a file's sections that are identical to sections of the file above it. */
const sharedShare = 0.4;
const skillChars = [2_000, 10_000, 40_000] as const;

/** The tokens of context files and skills in a prompt, with their parts off and on. */
export const promptSections: Figure = {
  title: "Tokens of the prompt's context files and of a skill's uses, by a real tokenizer: off, on",
  repetitions: 1,
  measure: async () => {
    const { minParagraphChars, budgetTokens } = defaultOptimisation.contextFiles;
    const { digestTokens } = defaultOptimisation.skills;
    const rows: Row[] = [];
    for (const count of levels) {
      const files = filesOf(count);
      const source = renderContextFiles(files);
      const shorten = (dedupe: boolean, budget: number): string =>
        shortenContextFiles(files, {
          rules: [],
          dedupe,
          minParagraphChars,
          budgetTokens: budget,
          tokensOf: estimateText,
        }).text;
      const off = tokens(source);
      const on = tokens(shorten(true, budgetTokens));
      const cut = tokens(shorten(true, 1_000));
      const name = `context files, ${count} ${count === 1 ? "level" : "levels"}`;
      rows.push(
        { name: `${name}: off`, unit: "tokens", values: [off] },
        { name: `${name}: dedupe`, unit: "tokens", values: [on] },
        { name: `${name}: dedupe / off`, unit: "x", values: [on / off] },
        { name: `${name}: with a budget of 1,000 / off`, unit: "x", values: [cut / off] },
      );
    }
    for (const chars of skillChars) {
      const skill = skillOf(chars);
      const digest = { tokens: digestTokens, tokensOf: estimateText, tool: SKILL_TOOL };
      const name = `skill of ${chars / 1_000} KB`;
      rows.push(
        { name: `${name}: each use, off`, unit: "tokens", values: [tokens(skill.block)] },
        { name: `${name}: first use, pointer`, unit: "tokens", values: [tokens(skill.block)] },
        {
          name: `${name}: repeat, pointer`,
          unit: "tokens",
          values: [tokens(pointerTo(skill, "message", estimateText))],
        },
        { name: `${name}: digest`, unit: "tokens", values: [tokens(digestOf(skill, digest))] },
      );
    }
    const notes = [
      `each file: ${sectionsOfFile} sections of about ${paragraphChars} characters; from the second level on ${sharedShare * 100} % of them are identical to sections of the file above (generated, seed ${seed})`,
      "context files are in every request; a skill's use is in every later request",
      "how often a model asks for the full text of a digest can only be measured with a real model",
    ];
    return { rows, notes };
  },
};

function tokens(text: string): number {
  return encode(text).length;
}

function filesOf(count: number): readonly ContextFile[] {
  const random = new Random(seed);
  const files: ContextFile[] = [];
  let above: readonly string[] = [];
  for (let level = 0; level < count; level += 1) {
    const paragraphs = Array.from({ length: sectionsOfFile }, (_, at) => {
      const shared = random.chance(sharedShare) ? above[at] : undefined;
      return shared ?? prose(random, paragraphChars).replace(/\n+/g, " ");
    });
    const content = paragraphs.map((text, at) => `## Section ${level + 1}.${at + 1}\n\n${text}\n`).join("\n");
    files.push({ path: `/home/user/project/${"folder/".repeat(level)}AGENTS.md`, content });
    above = paragraphs;
  }
  return files;
}

function skillOf(chars: number): SkillText {
  const random = new Random(seed + chars);
  const parts = Array.from({ length: 8 }, (_, at) => `## Step ${at + 1}\n\n${prose(random, chars / 8)}\n`);
  const path = "/home/user/.pi/agent/skills/review/SKILL.md";
  return skillText("review", prose(random, 160).replace(/\n+/g, " "), path, parts.join("\n"));
}
