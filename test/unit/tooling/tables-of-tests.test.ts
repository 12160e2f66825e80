import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

/** The titles of a file's tests as written: those of templates and tables with their placeholders. */
function titlesIn(file: string): ReadonlySet<string> {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const call = /\b(?:test|it)(?:\.\w+(?:\((?:[^()]|\([^()]*\))*\))?)*\(\s*(?:"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g;
  return new Set(Array.from(text.matchAll(call), ([, quoted, template]) => quoted ?? template ?? ""));
}

/** The names of the faults in a script. */
function namesIn(file: string): ReadonlySet<string> {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const names = text.matchAll(/\bname: (?:"([^"]*)"|`([^`]*)`)/g);
  return new Set(Array.from(names, ([, quoted, template]) => quoted ?? template ?? ""));
}

const table = readFileSync(join(root, "test/faults/README.md"), "utf8");
const rows = table.split("\n").filter((line) => /^\| F\d+ /.test(line));

test("every test that the table of faults names exists, with the exact title", () => {
  const wrong = rows.flatMap((row) => {
    const [, path = "", title = ""] = /`((?:test|scripts)\/[^`]+\.ts)`: "(.+)" \|$/.exec(row) ?? [];
    const file = join(root, path);
    const titles = path.startsWith("scripts/") ? namesIn(file) : titlesIn(file);
    return titles.has(title) ? [] : [row];
  });
  expect(wrong).toEqual([]);
});

test("every fault has a row", () => {
  const named = new Set(rows.map((row) => Number(/^\| F(\d+) /.exec(row)?.[1])));
  expect([...named].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 25 }, (_, n) => n + 1));
});

const promises = readFileSync(join(root, "test/integration/pruning/README.md"), "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| R002-"));

test("every test that the table of pruning names exists, with the exact title, and each promise has one", () => {
  const wrong = promises.filter((row) => {
    const named = [...row.matchAll(/`(test\/[^`]+\.ts)`: "((?:[^"\\]|\\.)*)"/g)];
    return named.length === 0 || named.some(([, path = "", title = ""]) => !titlesIn(join(root, path)).has(title));
  });
  expect(wrong).toEqual([]);
  expect(promises.map((row) => /^\| (R002-\d+) /.exec(row)?.[1])).toEqual(
    Array.from({ length: 33 }, (_, at) => `R002-${at + 1}`),
  );
});
