import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { type Plugin, type RolldownOutput, rolldown } from "rolldown";
import { openApiDocument } from "../protocol/openapi.ts";
import { openRpcDocument } from "../protocol/openrpc.ts";
import { configurationSchema } from "../server/configuration/settings.ts";
import { referencePage } from "../server/edge/reference-page.ts";
import { chunkOfModules, entries, exported, isReplaced, nameOf } from "./lib/chunks.ts";
import { bin, root, run } from "./lib/command.ts";
import { importsOf } from "./lib/imports.ts";
import { validatorModules } from "./lib/validators.ts";
import { bundleWeb } from "./lib/web-bundle.ts";

// Builds an empty dist/: bundled JavaScript, the declarations of what is exported, the schemas, the reference, and the
// page of `pi-rpcd web`. With `--without-types` it writes no declarations, which take the longest, for tests of the code.
const dist = join(root, "dist");

/**
 * What is not bundled: pi, whose files find each other; types; tables of tokens; CommonJS that pages load too, since its
 * bundle would need `node:module`; and compilers that no start loads. Nothing calls those of fastify.
 */
const external =
  /^(?:node:|@earendil-works\/|typebox|gpt-tokenizer|json-rpc-2\.0|ajv|@fastify\/(?:ajv|fast-json)|light-my-request)/;

/**
 * The text of a large module that is not plain ASCII stays in memory with two bytes for each character. Rolldown prints
 * a chunk again after the hook `renderChunk`.
 */
const asciiText: Plugin = {
  name: "ascii",
  generateBundle: (_options, bundle) => {
    for (const part of Object.values(bundle)) {
      if (part.type === "chunk") part.code = part.code.replace(/[\u0080-\uffff]/g, escaped);
    }
  },
};

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Replaces the compilation of schemas at run time. */
const builtValidation: Plugin = {
  name: "built-validation",
  resolveId: {
    filter: { id: /\/validation\.ts$/ },
    handler: (id, importer = "") =>
      isReplaced(nameOf(join(dirname(importer), id)), nameOf(importer))
        ? join(root, "protocol", "built-validation.ts")
        : null,
  },
};

/** The folder in `dist/` for the modules that are not entries. */
const chunks = "chunks";

const place = /\bimport\.meta\.(url|filename|dirname)\b/g;

/** A module that finds other files by its own place still finds them from a chunk. */
const formerPlace: Plugin = {
  name: "former-place",
  transform: {
    filter: { id: { include: /\.ts$/, exclude: /\/node_modules\// }, code: place },
    handler: (code, id) => {
      const name = nameOf(id);
      if (entries.includes(name)) return null;
      const distPath = `import.meta.dirname.slice(0, -${chunks.length})`;
      const formerly = {
        url: `new URL("../${name}.js", import.meta.url).href`,
        filename: `(${distPath} + "${name}.js")`,
        dirname: `(${distPath} + "${dirname(name)}")`,
      };
      return code.replaceAll(place, (_, field: keyof typeof formerly) => formerly[field]);
    },
  },
};

rmSync(dist, { recursive: true, force: true });
const hasTypes = !process.argv.includes("--without-types");
const { code, output } = hasTypes ? await run(bin("tsc"), ["-p", "tsconfig.build.json"]) : { code: 0, output: "" };
process.stderr.write(output);
if (code === 0) {
  if (hasTypes) removePrivateDeclarations();
  writeNotices([await bundle(), await bundleValidators(), await bundleWeb()]);
  for (const program of [["main.js"], ["rpc", "main.js"]]) chmodSync(join(dist, "cli", ...program), 0o755);
  writeReference();
}
process.exitCode = code;

/** Bundles our modules with the dependencies that a start loads. */
async function bundle(): Promise<RolldownOutput> {
  const chunkOf = chunkOfModules();
  await using build = await rolldown({
    cwd: root,
    platform: "node",
    input: Object.fromEntries(entries.map((name) => [name, join(root, `${name}.ts`)])),
    external,
    resolve: {
      // A bundler cannot follow the other form of jsonc-parser.
      mainFields: ["module", "main"],
      // The form for pages also runs on Node; the client library for pages shares it.
      alias: { uuid: join(root, "node_modules", "uuid", "dist", "index.js") },
    },
    plugins: [builtValidation, formerPlace, asciiText],
    // It warns of modules that one program loads late and another one at its start, which is intended.
    checks: { ineffectiveDynamicImport: false },
    preserveEntrySignatures: "allow-extension",
  });
  return await build.write({
    dir: dist,
    // The text of a module stays in memory.
    comments: false,
    entryFileNames: "[name].js",
    chunkFileNames: `${chunks}/[name]-[hash].js`,
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ debugName: "modules of a start", name: (file) => chunkOf.get(nameOf(file)) ?? null }],
    },
  });
}

/** Bundles the validators of our schemas with the few functions of ajv that they call. */
async function bundleValidators(): Promise<RolldownOutput> {
  const { modules, files } = validatorModules();
  const folder = join(root, "protocol", "validators");
  const idOf = (name: string): string => join(folder, `${name}.cjs`);
  await using build = await rolldown({
    cwd: root,
    platform: "node",
    input: Object.fromEntries(Array.from(modules.keys(), (name) => [name, idOf(name)])),
    plugins: [
      {
        name: "validators",
        resolveId: (id) => (id.startsWith(folder) ? id : null),
        load: (id) => modules.get(relative(folder, id).slice(0, -".cjs".length)) ?? null,
      },
    ],
  });
  const names = { entryFileNames: "[name].cjs", chunkFileNames: "[name].cjs" };
  const built = await build.write({ dir: join(dist, "validators"), format: "cjs", minify: true, ...names });
  writeFileSync(join(dist, "validators", "files.json"), JSON.stringify(files));
  return built;
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

/** Writes the licences of the packages whose code the bundles contain. */
function writeNotices(bundles: readonly RolldownOutput[]): void {
  const files = bundles.flatMap(({ output }) =>
    output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : [])),
  );
  const folders = new Set(files.flatMap((file) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []));
  const notices = Array.from(folders, noticeOf).sort();
  const head = "The files of this folder contain code of these packages.\n";
  writeFileSync(join(dist, "THIRD-PARTY.txt"), [head, ...notices].join(`\n${"-".repeat(80)}\n\n`));
}

function noticeOf(folder: string): string {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file === undefined ? `Author: ${author}` : readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${version}: ${license}\n\n${text}\n`;
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
