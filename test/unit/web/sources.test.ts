import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..", "..");
const files = globSync("web/**/*.{ts,tsx,html}", { cwd: root });

/** What would make a page of foreign text. The policy of the page forbids most of it too; this finds it earlier. */
const forbidden: readonly (readonly [name: string, pattern: RegExp])[] = [
  [
    "HTML of a text",
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc/,
  ],
  ["raw HTML in a view", /dangerouslySetInnerHTML/],
  ["a style as a text", /\bstyle=(?:["']|\{\s*["'`])|\.cssText|setAttribute\(\s*["']style|<style/],
  ["code of a text", /\beval\(|new Function\(|setTimeout\(\s*["'`]|javascript:/],
  ["a handler as a text", /setAttribute\(\s*["']on/],
  ["markup in a script", /<script(?! type="module" src=)/],
  ["a place in the address", /location\.(?:search|href)\b|URLSearchParams|document\.(?:cookie|referrer)|window\.name/],
  ["storage that outlives the tab", /localStorage|indexedDB|serviceWorker|caches\./],
];

test("there are sources to read", () => {
  expect(files.length).toBeGreaterThan(20);
});

test.each(forbidden)("no source of the page has %s", (_, pattern) => {
  const found = files.flatMap((file) => {
    const lines = readFileSync(join(root, file), "utf8").split("\n");
    return lines.flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : []));
  });
  expect(found).toEqual([]);
});

test("the fragment of the address is read in one place", () => {
  const readers = files.filter((file) => /location\.hash/.test(readFileSync(join(root, file), "utf8")));
  expect(readers).toEqual(["web/sign-in.ts"]);
});
