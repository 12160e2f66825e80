import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chunkOfModules, importedBy } from "../../../scripts/lib/chunks.ts";
import { root } from "../../../scripts/lib/command.ts";

const chunkOf = chunkOfModules();

/** The modules in the chunks of these modules and of all that they import. */
function loadedWith(...names: readonly string[]): ReadonlySet<string> {
  const loaded = new Set(names);
  for (const name of loaded) {
    for (const [other, chunk] of chunkOf) if (chunk === chunkOf.get(name)) loaded.add(other);
    for (const imported of importedBy(name, ["static"])) loaded.add(imported);
  }
  return loaded;
}

function source(name: string): string {
  return readFileSync(join(root, `${name}.ts`), "utf8");
}

test("a page loads no module that needs Node", () => {
  const loaded = loadedWith("client/browser", "protocol/index");
  expect(loaded.size).toBeGreaterThan(20);
  expect([...loaded].filter((name) => /from "node:|getBuiltinModule\(/.test(source(name)))).toEqual([]);
});

test("nothing is loaded before the compile cache but what makes it", () => {
  expect([...loadedWith("cli/compile-cache")]).toEqual([
    "cli/compile-cache",
    "server/lib/private-directory",
    "server/lib/make-directory",
  ]);
});

test("a thread and a pi load little that they do not need", () => {
  for (const entry of ["server/store/writer-thread", "server/custody/search/search-thread", "extension/index"]) {
    const needed = new Set([entry]);
    for (const name of needed) for (const imported of importedBy(name, ["static"])) needed.add(imported);
    const charsOf = (names: ReadonlySet<string>) => [...names].reduce((sum, name) => sum + source(name).length, 0);
    expect(charsOf(loadedWith(entry)) - charsOf(needed)).toBeLessThan(100_000);
  }
});

test("a start of the daemon loads few chunks of ours, and a short command a small part of them", () => {
  const chunksOf = (names: ReadonlySet<string>) => new Set([...names].map((name) => chunkOf.get(name)));
  const daemon = loadedWith("server/daemon");
  const short = loadedWith("cli/run", "cli/ls");
  expect(chunksOf(daemon).size).toBeLessThan(18);
  expect(chunksOf(short).size).toBeLessThan(12);
  expect(short.size).toBeLessThan(daemon.size / 3);
});
