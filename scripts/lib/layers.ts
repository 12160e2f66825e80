import { posix } from "node:path";
import { type Import, importsOf } from "./imports.ts";

// The arrows of ARCHITECTURE.md, as tables. A file belongs to the first layer with a matching pattern.

/** `folder/` is everything below it, `folder/*` the files directly in it, anything else one file. */
type Pattern = string;

interface Layer {
  readonly files: readonly Pattern[];
  /** Names of the layers it may import besides itself. */
  readonly imports: readonly string[] | "all";
  /** Names of the layers it may also load by `import()`, without their types. */
  readonly loads?: readonly string[];
  /** Names of the layers of which it may only import types. */
  readonly types?: readonly string[];
}

const base = ["protocol", "server/lib"] as const;

/** The rooms of the server's domain, from bottom to top. A room may import rooms of lower floors. */
const floors: readonly (readonly string[])[] = [
  ["server/frames"],
  ["server/store", "server/pi"],
  ["server/core"],
  ["server/log", "server/delivery"],
  ["server/dialogs", "server/context"],
  ["server/prompts"],
  ["server/custody"],
  ["server/children"],
  ["server/session"],
];

function roomLayers(): Record<string, Layer> {
  const below: string[] = [...base, "server/config"];
  const rooms: Record<string, Layer> = {};
  for (const floor of floors) {
    for (const room of floor) {
      const context = room === "server/context" ? ["context", "context/document"] : [];
      rooms[room] = { files: [`${room}/`], imports: [...below, ...context] };
    }
    below.push(...floor);
  }
  return rooms;
}

const layers: Readonly<Record<string, Layer>> = {
  protocol: { files: ["protocol/"], imports: [] },
  provider: { files: ["provider/"], imports: [] },
  "client/browser": { files: ["client/browser.ts"], imports: ["client", "protocol"] },
  client: { files: ["client/"], imports: ["protocol"] },
  web: { files: ["web/"], imports: ["client/browser"], types: ["protocol"] },
  acp: { files: ["acp/"], imports: ["protocol"] },
  // The parts are optional: one file loads them when one is on, and nothing else in the helper knows them.
  "extension/open": {
    files: ["extension/open.ts"],
    imports: ["extension", "protocol"],
    loads: ["context", "context/document"],
  },
  extension: { files: ["extension/"], imports: ["protocol", "extension/open"] },
  "context/document": { files: ["context/document/"], imports: ["protocol"] },
  context: { files: ["context/"], imports: ["protocol", "context/document", "extension"] },
  "cli/start": {
    files: ["cli/start.ts", "cli/config.ts", "cli/misspelt-variables.ts"],
    imports: ["cli", "client", "protocol", "server", "server/config"],
  },
  "cli/demo": {
    files: ["cli/demo.ts", "cli/demo/temporary-daemon.ts", "cli/try.ts", "cli/try/"],
    imports: ["cli", "cli/attach", "client", "protocol", "provider"],
  },
  "cli/doctor": {
    files: ["cli/doctor.ts", "cli/doctor/", "cli/pi.ts"],
    imports: ["cli", "cli/demo", "client", "protocol", "provider", "server/config", "server/pi"],
  },
  "cli/service": { files: ["cli/service.ts"], imports: ["cli", "client", "protocol", "server/lib", "server/pi"] },
  "cli/docs": { files: ["cli/docs.ts"], imports: ["cli", "protocol", "server/edge", "server/lib"] },
  "cli/rpc": {
    files: ["cli/rpc.ts", "cli/rpc/"],
    imports: ["cli", "client", "protocol", "server/config", "server/lib", "server/pi"],
  },
  "cli/acp": {
    files: ["cli/acp.ts", "cli/acp/"],
    imports: ["acp", "cli", "cli/doctor", "client", "protocol"],
  },
  "cli/attach": { files: ["cli/attach.ts", "cli/attach/"], imports: ["cli", "client", "protocol"] },
  "cli/main": { files: ["cli/main.ts"], imports: ["cli", "cli/start", "server/lib"] },
  cli: {
    files: ["cli/"],
    imports: [
      "client",
      "protocol",
      "server/lib",
      "cli/start",
      "cli/demo",
      "cli/doctor",
      "cli/docs",
      "cli/service",
      "cli/acp",
      "cli/attach",
      "cli/rpc",
    ],
  },
  "server/lib": { files: ["server/lib/"], imports: [] },
  "server/config": {
    files: ["server/log.ts", "server/recent-log.ts", "server/configuration/"],
    imports: base,
  },
  ...roomLayers(),
  "server/rpc": {
    files: ["server/rpc/"],
    imports: [...base, "server/config", "server/frames", ...floors.slice(2).flat()],
  },
  "server/edge": { files: ["server/edge/"], imports: [...base, "acp", "server/config", "server/frames", "server/rpc"] },
  // The composition root: daemon.ts and the other files in its folder.
  server: {
    files: ["server/*"],
    imports: [...base, "server/config", ...floors.flat(), "server/rpc", "server/edge"],
  },
  "tests and tools": { files: ["test/", "bench/", "examples/", "scripts/", "*"], imports: "all" },
};

/** Packages that only some layers may import. A name ending in `/` means the whole scope. */
const packages: Readonly<Record<string, readonly string[]>> = {
  fastify: ["server/edge"],
  "@fastify/": ["server/edge"],
  ws: ["server/edge", "client"],
  "@earendil-works/pi-tui": ["cli/attach"],
  "json-rpc-2.0": ["server/rpc", "server/edge", "client"],
};

interface Reach {
  readonly from: string;
  /** Prefixes of our files, or packages. */
  readonly never: readonly string[];
  readonly reason: string;
}

/** Modules that a file must not load, even indirectly. Types and dynamic imports do not count. */
const reaches: readonly Reach[] = [
  { from: "client/browser.ts", never: ["node:", "ws"], reason: "it runs in browsers" },
  { from: "client/browser.ts", never: ["context/"], reason: "clients do not need it" },
  { from: "client/index.ts", never: ["context/"], reason: "clients do not need it" },
  { from: "cli/main.ts", never: ["server/"], reason: "every command would load the daemon" },
  { from: "cli/attach.ts", never: ["@earendil-works/pi-tui"], reason: "only a terminal needs it" },
  {
    from: "extension/helper.ts",
    never: ["ajv", "typebox", "protocol/json-schema.ts"],
    reason: "every pi would load schemas at its start",
  },
];

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly message: string;
}

/** Checks every import of the given files (path from the root, with `/`, to source) against the tables. */
export function checkLayers(sources: ReadonlyMap<string, string>): readonly Finding[] {
  const imports = new Map([...sources].map(([file, source]) => [file, importsOf(source)]));
  const arrows = [...imports].flatMap(([file, found]) => checkFile(file, found));
  return [...arrows, ...reaches.flatMap((rule) => checkReach(rule, imports))];
}

function layerOf(file: string): string | undefined {
  const folder = posix.dirname(file);
  const matches = (pattern: Pattern): boolean => {
    if (pattern === "*") return folder === ".";
    if (pattern.endsWith("/*")) return folder === pattern.slice(0, -2);
    return pattern.endsWith("/") ? file.startsWith(pattern) : file === pattern;
  };
  return Object.keys(layers).find((name) => layers[name]?.files.some(matches));
}

function resolveImport(file: string, specifier: string): string {
  return specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : specifier;
}

function checkFile(file: string, imports: readonly Import[]): readonly Finding[] {
  const name = layerOf(file);
  const { imports: allowed, loads = [], types = [] } = layers[name ?? ""] ?? {};
  if (allowed === undefined) {
    return [{ file, line: 1, message: "belongs to no layer; name its folder in scripts/lib/layers.ts" }];
  }
  if (allowed === "all") return [];
  return imports.flatMap(({ specifier, line, kind }) => {
    const reachable = [...allowed, ...(kind === "dynamic" ? loads : kind === "type" ? types : [])];
    const message = specifier.startsWith(".")
      ? arrowBreach(name ?? "", reachable, resolveImport(file, specifier))
      : packageBreach(name ?? "", specifier);
    return message === undefined ? [] : [{ file, line, message }];
  });
}

function arrowBreach(from: string, allowed: readonly string[], target: string): string | undefined {
  const to = layerOf(target);
  if (to === from || (to !== undefined && allowed.includes(to))) return undefined;
  const may = allowed.length === 0 ? "nothing else of ours" : `only ${allowed.join(", ")}`;
  return `${from} may not import ${to ?? "a folder without a layer"} (${target}); it may import ${may}`;
}

function packageBreach(from: string, specifier: string): string | undefined {
  const known = Object.entries(packages).find(([name]) => isOfPackage(name, specifier));
  if (known === undefined || known[1].includes(from)) return undefined;
  return `${from} may not import the package ${specifier}; only ${known[1].join(", ")} may`;
}

function isOfPackage(name: string, specifier: string): boolean {
  return specifier === name || specifier.startsWith(/[/:]$/.test(name) ? name : `${name}/`);
}

function checkReach(rule: Reach, imports: ReadonlyMap<string, readonly Import[]>): readonly Finding[] {
  const findings: Finding[] = [];
  const paths = new Map([[rule.from, rule.from]]);
  for (const [file, path] of paths) {
    for (const { specifier, line, kind } of imports.get(file) ?? []) {
      if (kind !== "static") continue;
      const target = resolveImport(file, specifier);
      const way = `${path} → ${target}`;
      if (rule.never.some((name) => isOfPackage(name, target))) {
        findings.push({ file, line, message: `${rule.from} must not load ${target}: ${rule.reason} (${way})` });
      } else if (!paths.has(target)) {
        paths.set(target, way);
      }
    }
  }
  return findings;
}
