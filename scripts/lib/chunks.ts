import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "./command.ts";
import { type Import, importsOf } from "./imports.ts";

/**
 * What is loaded together when our programs start: by each of them first the module that makes Node keep what it
 * compiles, then by a short command, by `pi-rpcd start`, by its daemon, and by `pi-rpcd-pi`.
 */
const starts = {
  cache: ["cli/compile-cache"],
  short: ["cli/run", "cli/ls", "cli/status"],
  start: ["cli/start", "cli/background", "cli/misspelt-variables", "server/previous-exit"],
  daemon: ["server/configuration/configuration", "server/daemon", "server/log"],
  "drop-in": ["cli/rpc/drop-in"],
};
const programs = ["cli/main", "cli/rpc/main", "cli/try/ask", "cli/try/host"];
/** Exported modules that also run in a page. */
const pages = ["client/browser", "protocol/index"];
/** The other entries: exported modules for Node, what pi loads, the program that keeps pi, and threads. */
const others = [
  "client/index",
  "context/document/index",
  "context/parts/estimator/exact-worker",
  "extension/index",
  "extension/keeper",
  "server/context/work-thread",
  "server/custody/search/search-thread",
  "server/store/copying-thread",
  "server/store/writer-thread",
];
/** The modules that package.json exports, by name. */
export const exported = [...pages, "client/index", "context/document/index", "extension/index"];
/** The modules of the build that have files with their own names. */
export const entries = [...programs, ...pages, ...others];

/** How much more all users together may load because of one merging, in UTF-16 units of source. */
const maxNeedlessChars = 50_000;

/**
 * Whether the build takes compiled validators instead. The exported protocol compiles schemas, because it also runs in a
 * page.
 */
export function isReplaced(name: string, importer: string): boolean {
  return name === "protocol/validation" && importer !== "protocol/index";
}

/** The name of a module of ours, such as `cli/main`. */
export function nameOf(file: string): string {
  return relative(root, file).slice(0, -".ts".length);
}

/** Modules that the same users need: starts of programs, entries, and what programs load later. */
interface ModuleSet {
  readonly users: readonly string[];
  readonly modules: readonly string[];
}

/**
 * The chunks of the modules that our programs load when they start, by the modules' names. Node takes a while for each
 * file and each import of one, so modules with the same users share a chunk, and chunks are merged while that makes
 * their users load little more than they need.
 */
export function chunkOfModules(): ReadonlyMap<string, string> {
  const atStart = Object.values(starts).flat();
  const later = [...closureOf(programs, ["static", "dynamic"])]
    .flatMap((name) => importedBy(name, ["dynamic"]))
    .filter((name) => !atStart.includes(name));
  const needed: readonly (readonly [string, ReadonlySet<string>])[] = [
    ["page", closureOf(pages, ["static", "dynamic"])],
    ...others.map((name) => [name, closureOf([name], ["static"])] as const),
    ...Object.entries({ ...starts, later }).map(([user, names]) => [user, closureOf(names, ["static"])] as const),
  ];
  const sets = new Map<string, ModuleSet>();
  for (const name of closureOf(atStart, ["static"])) {
    if (entries.includes(name)) continue;
    const users = needed.flatMap(([user, names]) => (names.has(name) ? [user] : []));
    sets.set(users.join(), { users, modules: [...(sets.get(users.join())?.modules ?? []), name] });
  }
  const merged = mergedSets([...sets.values()]);
  return new Map(
    merged.flatMap((chunk, at) =>
      chunk.flatMap(({ modules }) => modules.map((name) => [name, `start-${at}`] as const)),
    ),
  );
}

type Chunk = readonly ModuleSet[];

/** Puts sets of modules into chunks: merges the two chunks that cost least, as long as that costs little. */
function mergedSets(sets: readonly ModuleSet[]): readonly Chunk[] {
  const loadedChars = loadedCharsOf(sets);
  let chunks: readonly Chunk[] = sets.map((set) => [set]);
  for (;;) {
    const before = loadedChars(chunks);
    const pairs = chunks.flatMap((one, at) => chunks.slice(at + 1).map((other) => [one, other] as const));
    const [best] = pairs
      .filter((pair) => apart.every((user) => isUsedBy(user, pair[0]) === isUsedBy(user, pair[1])))
      .map(([one, other]) => [...chunks.filter((chunk) => chunk !== one && chunk !== other), [...one, ...other]])
      .map((after) => ({ after, cost: loadedChars(after) - before }))
      .sort((a, b) => a.cost - b.cost);
    if (best === undefined || best.cost > maxNeedlessChars) return chunks;
    chunks = best.after;
  }
}

/**
 * Users whose chunks are not merged with those of others. A page cannot load what needs Node. Node keeps nothing that is
 * compiled before the compile cache is there.
 */
const apart = ["page", "cache"];

function isUsedBy(user: string, chunk: Chunk): boolean {
  return chunk.some(({ users }) => users.includes(user));
}

/**
 * Returns a function that adds up what all users load if these are the chunks, in UTF-16 units. A chunk comes with all
 * that it imports.
 */
function loadedCharsOf(sets: readonly ModuleSet[]): (chunks: readonly Chunk[]) => number {
  const setOf = new Map(sets.flatMap((set) => set.modules.map((name) => [name, set] as const)));
  const facts = new Map(
    sets.map((set) => {
      const imported = set.modules.flatMap((name) => importedBy(name, ["static"]));
      const chars = set.modules.reduce((sum, name) => sum + sourceOf(name).length, 0);
      return [set, { chars, imports: new Set(imported.flatMap((name) => setOf.get(name) ?? [])) }] as const;
    }),
  );
  const users = new Set(sets.flatMap((set) => set.users));
  return (chunks) => {
    const chunkOf = new Map(chunks.flatMap((chunk) => chunk.map((set) => [set, chunk] as const)));
    let chars = 0;
    for (const user of users) {
      const loaded = new Set(chunks.filter((chunk) => chunk.some((set) => set.users.includes(user))));
      for (const chunk of loaded) {
        for (const set of chunk) {
          chars += facts.get(set)?.chars ?? 0;
          for (const imported of facts.get(set)?.imports ?? []) loaded.add(chunkOf.get(imported) ?? chunk);
        }
      }
    }
    return chars;
  };
}

/** Modules of ours and those that they import, by name. */
function closureOf(names: readonly string[], kinds: readonly Import["kind"][]): ReadonlySet<string> {
  const found = new Set(names);
  for (const name of found) for (const imported of importedBy(name, kinds)) found.add(imported);
  return found;
}

function sourceOf(name: string): string {
  return readFileSync(join(root, `${name}.ts`), "utf8");
}

/** The modules of ours that a module imports, as the build resolves them. */
export function importedBy(name: string, kinds: readonly Import["kind"][]): readonly string[] {
  return importsOf(sourceOf(name))
    .filter(({ specifier, kind }) => specifier.startsWith(".") && kinds.includes(kind))
    .map(({ specifier }) => join(dirname(name), specifier).slice(0, -".ts".length))
    .map((imported) => (isReplaced(imported, name) ? "protocol/built-validation" : imported));
}
