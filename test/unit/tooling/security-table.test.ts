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
  expect(rows.map((row) => /^\| (S\d+) /.exec(row)?.[1])).toEqual(Array.from({ length: 23 }, (_, at) => `S${at + 1}`));
  expect(rows.filter((row) => testsOf(row).length === 0 || row.split(" | ").length !== 4)).toEqual([]);
});

test("every test that the table of defences names is there", () => {
  const missing = rows
    .flatMap(testsOf)
    .filter(
      ([file, title]) => !existsSync(join(root, file)) || !readFileSync(join(root, file), "utf8").includes(title),
    );
  expect(missing).toEqual([]);
});
