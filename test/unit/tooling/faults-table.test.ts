import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

test("every test that the table of faults names is there", () => {
  const table = readFileSync(join(root, "test/faults/README.md"), "utf8");
  const rows = table.split("\n").filter((line) => /^\| F\d+ /.test(line));
  const named = rows.map((row) => /`(test\/[^`]+)`: "([^"]+)" \|$/.exec(row) ?? [row, "", ""]);
  expect(named.length).toBeGreaterThan(0);
  const missing = named.filter(
    ([, file = "", title = ""]) =>
      title === "" || !existsSync(join(root, file)) || !readFileSync(join(root, file), "utf8").includes(title),
  );
  expect(missing).toEqual([]);
});
