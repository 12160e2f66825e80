import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import { PROJECT_FILE, readProjectFile } from "../../../server/configuration/project-file.ts";

const validator = createValidator();
let root = "";
let file = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "project-")));
  mkdirSync(join(root, ".pi"));
  file = join(root, PROJECT_FILE);
});
afterEach(() => rmSync(root, { recursive: true }));

const read = () => readProjectFile(root, validator);

test("a project's file is optional, and an empty one counts as none", async () => {
  expect(await read()).toBeUndefined();
  writeFileSync(file, "{}");
  expect(await read()).toBeUndefined();
});

test("it is JSON with comments, and its paths are relative to the project", async () => {
  writeFileSync(join(root, "compact.md"), "words");
  writeFileSync(
    file,
    '// ours\n{"optimisation": {"compaction": {"prompt": "compact.md"}, "masking": {"afterTurns": 5,}}}',
  );
  expect(await read()).toEqual({
    file,
    optimisation: { compaction: { prompt: join(root, "compact.md") }, masking: { afterTurns: 5 } },
  });
});

test.each<[text: string, problem: string]>([
  ["{", "is not JSON: line 1: CloseBraceExpected."],
  ["", "is not JSON: line 1: ValueExpected."],
  ["[]", "has mistakes: line 1: the file must be object."],
  ['{"a": 1,\n"a": 2}', 'has mistakes: line 2: "a" is repeated.'],
  ['{\n"__proto__": {}}', 'has mistakes: line 2: "__proto__" is not a known parameter.'],
  ['{\n"profiles": {}}', "has mistakes: line 2: /profiles is not a known parameter."],
  [
    '{"optimisation": {\n"masking": {\n"afterTurn": 3}}}',
    "has mistakes: line 3: optimisation.masking.afterTurn: unknown key; the nearest is afterTurns.",
  ],
  ['{"optimisation": null}', "has mistakes: line 1: optimisation: null is not an object."],
  ['{"optimisation": {"compaction": "x"}}', 'has mistakes: line 1: optimisation.compaction: "x" is not an object.'],
  [
    '{"optimisation": {"skills": {\n"mode": "off", "enabled": true}}}',
    'has mistakes: line 2: optimisation.skills.mode: "off" contradicts optimisation.skills.enabled, which is true.',
  ],
])("what is wrong in %j is told with file, line and key", async (text, problem) => {
  writeFileSync(file, text);
  expect(await read()).toEqual({ file, problem: `${file} ${problem}` });
});

test("a missing file that it names is reported", async () => {
  writeFileSync(file, '{"optimisation": {"compaction": {"prompt": "none.md"}}}');
  const { problem } = (await read()) ?? {};
  expect(problem).toBe(
    `${file} has mistakes: line 1: optimisation.compaction.prompt: "${join(root, "none.md")}" does not exist.`,
  );
});

test("a file that is not regular is not awaited, and one too long or too deep is not read", async () => {
  execFileSync("mkfifo", [file]);
  expect(await read()).toEqual({ file, problem: `${file} is not a file.` });
  rmSync(file);
  writeFileSync(file, `{"optimisation": {}} ${" ".repeat(300_000)}`);
  expect(await read()).toEqual({ file, problem: `${file} is longer than 262144 bytes.` });
  writeFileSync(file, `${'{"optimisation":'.repeat(15_000)}{}`);
  expect((await read())?.problem).toContain(file);
  rmSync(file);
  mkdirSync(file);
  expect((await read())?.problem).toBe(`${file} is not a file.`);
});
