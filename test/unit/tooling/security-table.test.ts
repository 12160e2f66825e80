import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const rows = readFileSync(join(root, "SECURITY.md"), "utf8")
  .split("\n")
  .filter((line) => /^\| S\d+ /.test(line));
const testsOf = (row: string): readonly (readonly [file: string, title: string])[] =>
  Array.from(row.matchAll(/`(test\/[^`]+)`: "([^"]+)"/g), ([, file = "", title = ""]) => [file, title]);

test("the table of defences has every row, and each names a test", () => {
  expect(rows.map((row) => /^\| (S\d+) /.exec(row)?.[1])).toEqual(Array.from({ length: 36 }, (_, at) => `S${at + 1}`));
  expect(rows.filter((row) => testsOf(row).length === 0 || row.split(" | ").length !== 4)).toEqual([]);
});

/**
 * Missing tests that rows name. A title must be complete in its file; for a table of cases, one of its cases is named.
 */
function missingOf(lines: readonly string[]): readonly (readonly [file: string, title: string])[] {
  return lines.flatMap(testsOf).filter(([file, title]) => {
    const path = join(root, file);
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    const whole = title.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&");
    const isTest = file.endsWith(".test.ts");
    return !new RegExp(isTest ? `(?:\\b(?:test|it)\\(|\\)\\()\\s*"${whole}"` : `"${whole}"`).test(text);
  });
}

test("every test that the table of defences names exists", () => {
  expect(missingOf(rows)).toEqual([]);
});

test("a missing test, or one whose title only contains the name, is reported", () => {
  const file = "test/unit/tooling/security-table.test.ts";
  const there = [file, "every test that the table of defences names exists"] as const;
  const missing = [
    [file, "every test that the table of defences names"],
    [file, "a title that stands in no test"],
    ["test/unit/no-such.test.ts", there[1]],
  ] as const;
  const lines = [there, ...missing].map(([path, title]) => `| S0 | defence | \`${path}\`: "${title}" | nothing |`);
  expect(missingOf(lines)).toEqual(missing);
});
