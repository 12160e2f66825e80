import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";
import { openApiDocument } from "../protocol/openapi.ts";
import { openRpcDocument } from "../protocol/openrpc.ts";
import { configurationSchema } from "../server/configuration/settings.ts";
import { referencePage } from "../server/edge/reference-page.ts";
import { bin, root, run } from "./lib/command.ts";
import { importsOf } from "./lib/imports.ts";

// Builds an empty dist/: bundled JavaScript, the declarations of what is exported, the schemas and the reference.
const dist = join(root, "dist");
const folders = ["cli", "client", "context", "extension", "protocol", "provider", "server"];
/** The modules that package.json exports. */
const exported = ["client/index", "client/browser", "protocol/index", "context/document/index", "extension/index"];
/** Modules that run as a process or a thread of their own. */
const programs = [
  "cli/main",
  "cli/try/ask",
  "cli/try/host",
  "server/store/writer-thread",
  "server/context/work-thread",
  "context/parts/estimator/exact-worker",
];

rmSync(dist, { recursive: true, force: true });
const { code, output } = await run(bin("tsc"), ["-p", "tsconfig.build.json"]);
process.stderr.write(output);
if (code === 0) {
  removePrivateDeclarations();
  await bundle();
  chmodSync(join(dist, "cli", "main.js"), 0o755);
  writeReference();
}
process.exitCode = code;

/** Bundles our modules; dependencies are installed with the package. */
async function bundle(): Promise<void> {
  const entries = [...programs, ...exported];
  const placed = modulesWithPlace();
  const nameOf = (file: string): string => relative(root, file).slice(0, -".ts".length);
  await using build = await rolldown({
    cwd: root,
    platform: "node",
    input: Object.fromEntries(entries.map((name) => [name, join(root, `${name}.ts`)])),
    external: /^[^./]/,
    preserveEntrySignatures: "allow-extension",
  });
  await build.write({
    dir: dist,
    entryFileNames: "[name].js",
    chunkFileNames: ({ name }) => (placed.has(name) ? "[name].js" : "chunks/[name]-[hash].js"),
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        {
          debugName: "modules with a place",
          name: (file) => (placed.has(nameOf(file)) && !entries.includes(nameOf(file)) ? nameOf(file) : null),
        },
      ],
    },
  });
}

/** Modules that find other files by their own place keep it. */
function modulesWithPlace(): ReadonlySet<string> {
  const sources = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(folder, name)),
  );
  const isPlaced = (file: string): boolean => /import\.meta\.(?:url|dirname|filename)/.test(readFileSync(file, "utf8"));
  return new Set(sources.filter((name) => isPlaced(join(root, name))).map((name) => name.slice(0, -".ts".length)));
}

/** Keeps the declarations that those of the exported modules import. */
function removePrivateDeclarations(): void {
  const kept = new Set<string>();
  const keep = (file: string): void => {
    if (kept.has(file)) return;
    kept.add(file);
    for (const { specifier } of importsOf(readFileSync(file, "utf8")))
      if (specifier.startsWith(".")) keep(join(file, "..", specifier.replace(/\.ts$/, ".d.ts")));
  };
  for (const name of exported) keep(join(dist, `${name}.d.ts`));
  for (const name of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
    const file = join(dist, name);
    if (name.endsWith(".d.ts") && !kept.has(file)) rmSync(file);
  }
}

function writeReference(): void {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly version: string };
  const schemas = {
    "openrpc.json": openRpcDocument(version),
    "openapi.json": openApiDocument(version),
    "config.schema.json": configurationSchema(),
  };
  mkdirSync(join(dist, "schema"));
  for (const [file, schema] of Object.entries(schemas))
    writeFileSync(join(dist, "schema", file), `${JSON.stringify(schema)}\n`);
  writeFileSync(join(dist, "reference.html"), referencePage(version));
}
