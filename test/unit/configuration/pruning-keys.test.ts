import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { defaultPruning } from "../../../protocol/pruning/config.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const textOf = (...globs: readonly string[]): string =>
  globs
    .flatMap((glob) => globSync(glob, { cwd: root }))
    .map((file) => readFileSync(join(root, file), "utf8"))
    .join("\n");

/** Keys without nested keys: `compress.minSavings`. */
function keysOf(options: object, before = ""): string[] {
  return Object.entries(options).flatMap(([key, value]) => {
    const hasKeys =
      typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
    return hasKeys ? keysOf(value, `${before}${key}.`) : [`${before}${key}`];
  });
}

test("every key is read somewhere, and a test of its effect sets it, besides the tests of configurations", () => {
  const code = textOf(
    "context/**/*.ts",
    "server/{session,context,core,children}/**/*.ts",
    "protocol/pruning/limits.ts",
  );
  const tests = textOf("test/{integration,e2e,contract}/**/*.ts", "test/unit/{context,extension}/**/*.ts");
  const named = (text: string, key: string): boolean => new RegExp(`\\b${key.split(".").at(-1)}\\b`).test(text);
  const keys = keysOf(defaultPruning);
  expect(keys.length).toBeGreaterThan(40);
  expect(keys.filter((key) => !named(code, key))).toEqual([]);
  expect(keys.filter((key) => !named(tests, key))).toEqual([]);
});
