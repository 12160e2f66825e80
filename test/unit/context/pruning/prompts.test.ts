import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, test } from "vitest";
import * as files from "../../../../context/pruning/prompts/built-in.ts";
import { builtInPrompt, createPrompts } from "../../../../context/pruning/prompts/prompts.ts";
import { BLOCK_HEADER } from "../../../../context/pruning/record.ts";
import { tagOf } from "../../../../extension/message-tag.ts";
import { checkPrompt, filledPrompt, type PromptName, promptFiles } from "../../../../protocol/pruning/prompts.ts";

const builtIn: Readonly<Record<PromptName, string>> = { ...files };
const names = Object.keys(promptFiles) as PromptName[];
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

/** The statements of each text. */
const statements: Readonly<Record<PromptName, readonly number[]>> = {
  system: range(1, 9),
  manual: [2, 10, 12, 14, 17, 18],
  compress: range(10, 17),
  limitStrong: range(19, 22),
  limitSoft: [21, 23],
  turn: [24],
  iteration: [25],
};

test.for(names)("the text %s makes each of its statements once, and its numbers are removed", (name) => {
  const numbers = [...builtIn[name].matchAll(/^<!-- ([0-9]+) --> \S/gm)].map(([, number]) => Number(number));
  expect(numbers.toSorted((a, b) => a - b)).toEqual(statements[name]);
  const text = builtInPrompt(name);
  expect(text).not.toMatch(/<!--|-->/);
  expect(text.split("\n").every((line) => line.trim() === line && line !== "")).toBe(true);
  expect(checkPrompt(name, builtIn[name])).toEqual([]);
});

test("the prompt and the tool's description cost less than a thousand tokens", () => {
  const tokens = (name: PromptName) => countTokens(builtInPrompt(name));
  expect({ system: tokens("system"), manual: tokens("manual"), compress: tokens("compress") }).toMatchInlineSnapshot(`
    {
      "compress": 208,
      "manual": 132,
      "system": 260,
    }
  `);
  expect(tokens("system") + tokens("compress")).toBeLessThan(1_000);
});

test("the prompt names the header and the tag that requests have", () => {
  expect(builtInPrompt("system")).toContain(BLOCK_HEADER);
  for (const name of ["system", "manual"] as const) expect(builtInPrompt(name)).toContain(tagOf("m012"));
});

test("a reminder's values are inserted once and never searched for variables", () => {
  const values = { usage: "81 %", max: "80 %", blocks: "{{candidates}}", candidates: "$& {{usage}}" };
  expect(filledPrompt("{{usage}} of {{max}}: {{blocks}}, {{candidates}}, {{other}}", values)).toBe(
    "81 % of 80 %: {{candidates}}, $& {{usage}}, {{other}}",
  );
});

test.for([
  ["system", "One.\nTwo {{usage}}.", 2, "{{usage}} is allowed only in reminders."],
  [
    "turn",
    "{{usage}} {{windows}}",
    1,
    "{{windows}} is not a variable; the variables are {{usage}}, {{max}}, {{blocks}}, {{candidates}}.",
  ],
  ["turn", "a\n\n{{ usage }}", 3, "{{ usage }} is not a variable"],
  ["compress", " \n", 1, "The text is empty."],
] as const)("an override of %s with %j is refused with its line", ([name, text, line, message]) => {
  expect(checkPrompt(name, text)).toEqual([{ line, message: expect.stringContaining(message) }]);
});

test("a directory's valid texts replace the built-in ones, and are read once, and again when pi is configured", () => {
  const directory = mkdtempSync(join(tmpdir(), "prompts-"));
  try {
    const write = (file: string, content: string | Buffer) => writeFileSync(join(directory, file), content);
    write("system.md", "<!-- 1 --> Ours.\n<!-- no number --> Stays.\n");
    write("turn.md", "Now {{nothing}}.");
    write("iteration.md", Buffer.from([0xff, 0xfe]));
    write("limit-soft.md", "x".repeat(40_000));
    const faults: string[] = [];
    let at: string | null = directory;
    let configuration = {};
    const prompts = createPrompts({
      directory: () => at,
      configured: () => configuration,
      degraded: (why) => faults.push(why),
    });
    for (const _twice of [1, 2]) {
      expect(prompts.text("system")).toBe("Ours.\n<!-- no number --> Stays.");
      for (const name of names.filter((other) => other !== "system"))
        expect(prompts.text(name)).toBe(builtInPrompt(name));
    }
    expect(faults).toHaveLength(3);
    expect(faults.join("\n")).toMatch(/limit-soft.md .*more than 32768 bytes/);
    expect(faults.join("\n")).toMatch(/turn.md:1: \{\{nothing\}\} is not a variable/);
    expect(faults.join("\n")).toMatch(/iteration.md cannot be read/);
    write("system.md", "Others.");
    expect(prompts.text("system")).toContain("Ours.");
    configuration = {};
    expect(prompts.text("system")).toBe("Others.");
    at = null;
    expect(prompts.text("system")).toBe(builtInPrompt("system"));
  } finally {
    rmSync(directory, { recursive: true });
  }
});
