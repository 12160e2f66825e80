import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { bin, type CommandOptions, root, run } from "./lib/command.ts";

// Builds and packs the package, installs it like a user, and tries every entry point.

const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Readonly<
  Record<string, string>
>;
const work = mkdtempSync(join(tmpdir(), "pi-rpcd-package-"));
const project = join(work, "project");

class StepFailed extends Error {}

async function step(what: string, command: string, args: readonly string[], options?: CommandOptions): Promise<string> {
  const { code, output } = await run(command, args, options);
  if (code === 0) return output;
  throw new StepFailed(`${what} failed: ${[command, ...args].join(" ")}\n${output}`);
}

async function pack(): Promise<string> {
  await step("building", process.execPath, ["scripts/build.ts"]);
  await step("packing", "npm", ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", work]);
  const tarball = readdirSync(work).find((file) => file.endsWith(".tgz"));
  if (tarball === undefined) throw new StepFailed("packing failed: npm pack left no tarball");
  return join(work, tarball);
}

async function lint(tarball: string): Promise<void> {
  await step("publint", bin("publint"), ["run", tarball, "--strict"]);
  await step("attw", bin("attw"), [tarball, "--profile", "esm-only", "--no-emoji", "--no-color", "--format", "ascii"]);
}

async function install(tarball: string): Promise<void> {
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  const quiet = ["--omit=dev", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  await step("installing the tarball", "npm", ["install", ...quiet, tarball], { cwd: project });
}

async function useProgram(): Promise<void> {
  const program = join(project, "node_modules", ".bin", name ?? "");
  const printed = await step("--version", program, ["--version"], { cwd: project, timeoutMs: 30_000 });
  if (!printed.includes(version ?? "")) {
    throw new StepFailed(`--version printed ${JSON.stringify(printed)} instead of ${version}`);
  }
  const help = await step("--help", program, ["--help"], { cwd: project, timeoutMs: 30_000 });
  if (!help.includes("Usage")) throw new StepFailed(`--help prints no usage:\n${help}`);
  // It uses the store's thread, the helper inside pi and the scripted provider.
  await step("demo", program, ["demo"], { cwd: project, timeoutMs: 300_000 });
  await openTrial();
}

/** `try` without its terminal: the process that it starts opens a session, with the extension, and ends when told. */
async function openTrial(): Promise<void> {
  const host = join(project, "node_modules", name ?? "", "dist", "cli", "try", "host.js");
  const code = `import { fork } from "node:child_process";
    fork(${JSON.stringify(host)}, { execArgv: [] }).on("message", function ({ kind }) { console.log(kind); this.disconnect(); });`;
  const printed = await step("try", process.execPath, ["--input-type=module", "-e", code], { timeoutMs: 60_000 });
  if (!printed.startsWith("open\n")) throw new StepFailed(`the process of try has reported:\n${printed}`);
}

function readSchemas(): void {
  for (const schema of ["openrpc", "openapi", "config.schema"]) {
    const file = join(project, "node_modules", name ?? "", "dist", "schema", `${schema}.json`);
    if (!existsSync(file)) throw new StepFailed(`the package lacks ${file}`);
    JSON.parse(readFileSync(file, "utf8"));
  }
}

/** The bundler may add exports to a module that other bundles import, or remove some. */
async function importEntries(): Promise<void> {
  const sources = { client: "client", protocol: "protocol", context: "context/document", extension: "extension" };
  for (const [entry, source] of Object.entries(sources)) {
    const expected = Object.keys((await import(join(root, source, "index.ts"))) as object);
    const code = `console.log(Object.keys(await import("${name}/${entry}")).join());`;
    const exported = await step(`importing ${name}/${entry}`, process.execPath, ["--input-type=module", "-e", code], {
      cwd: project,
      timeoutMs: 30_000,
    });
    if (exported.trim() !== expected.sort().join()) {
      throw new StepFailed(`${name}/${entry} exports ${exported.trim()} instead of ${expected.join()}`);
    }
  }
}

/** A page's bundler must find everything that the client loads, and no Node module. */
async function bundleForPage(): Promise<void> {
  const packages: string[] = [];
  await using build = await rolldown({
    cwd: project,
    platform: "browser",
    input: `${name}/client`,
    external: (id) => {
      if (isBuiltin(id)) packages.push(id);
      return isBuiltin(id);
    },
  });
  await build.generate();
  if (packages.length > 0) throw new StepFailed(`the client for pages loads ${packages.join()}`);
}

function followLinks(): void {
  const folder = join(project, "node_modules", name ?? "");
  const text = readFileSync(join(folder, "README.md"), "utf8");
  for (const [, link = ""] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
    if (!existsSync(join(folder, link))) throw new StepFailed(`README.md links to ${link}, which the package lacks`);
  }
}

interface Consumer {
  readonly kind: string;
  readonly compilerOptions: object;
  readonly source: string;
}

const strict = { strict: true, exactOptionalPropertyTypes: true, target: "es2024", noEmit: true };
const onNode = { ...strict, module: "nodenext", lib: ["es2024"], types: ["node"] };
const inPage = { ...strict, module: "preserve", moduleResolution: "bundler", customConditions: ["browser"], types: [] };
const clientSource = `
import * as client from "${name}/client";
import { type MethodName, methods, PROTOCOL_VERSION } from "${name}/protocol";
export const exported: string[] = Object.keys(client);
export const wireVersion: number = PROTOCOL_VERSION;
export const names = Object.keys(methods) as MethodName[];
`;

/** On Node a client needs no DOM types, in a page no Node types; every reachable declaration is checked. */
const consumers: readonly Consumer[] = [
  { kind: "node", compilerOptions: onNode, source: clientSource },
  { kind: "page", compilerOptions: { ...inPage, lib: ["es2024", "esnext.disposable", "dom"] }, source: clientSource },
  {
    kind: "extension",
    // pi's own declarations do not pass this check.
    compilerOptions: { ...onNode, skipLibCheck: true },
    source: `import extension, { createBackgroundRunner, deliver } from "${name}/extension";
export const load: (...args: never[]) => unknown = extension;
export const jobsOf = (...args: Parameters<typeof createBackgroundRunner>): object => createBackgroundRunner(...args).jobs();
export const deliveryIdOf = (...args: Parameters<typeof deliver>): string => deliver(...args).deliveryId;
`,
  },
];

async function typeCheck(): Promise<void> {
  // A dependency may have installed other types of Node.
  const nodeTypes = join(project, "node_modules", "@types", "node");
  rmSync(nodeTypes, { recursive: true, force: true });
  mkdirSync(join(nodeTypes, ".."), { recursive: true });
  symlinkSync(join(root, "node_modules", "@types", "node"), nodeTypes);
  for (const { kind, compilerOptions, source } of consumers) {
    writeFileSync(join(project, `${kind}.ts`), source);
    const config = join(project, `tsconfig.${kind}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions, files: [`${kind}.ts`] }));
    await step(`type-checking a consumer (${kind})`, bin("tsc"), ["-p", config], { cwd: project });
  }
}

/** Loads the examples as a user's own extensions, which import the installed package, in the bundled pi. */
async function loadInPi(): Promise<void> {
  const extensions = join(root, "examples", "extensions");
  const args = readdirSync(extensions).flatMap((file) => {
    const source = readFileSync(join(extensions, file), "utf8").replace(
      "../../extension/index.ts",
      `${name}/extension`,
    );
    writeFileSync(join(project, file), source);
    return ["--extension", join(project, file)];
  });
  const pi = join(project, "node_modules", "@earendil-works", "pi-coding-agent", "dist", "bundle", "cli.js");
  const command = `echo '{"type":"get_commands"}' | "$0" "$@"`;
  const printed = await step(
    "loading the examples in pi",
    "bash",
    ["-c", command, process.execPath, pi, "--mode", "rpc", "--no-session", "--no-extensions", ...args],
    {
      cwd: project,
      env: { PI_CODING_AGENT_DIR: join(work, "agent"), PI_OFFLINE: "1" },
      timeoutMs: 60_000,
    },
  );
  if (!printed.includes('"name":"jobs"')) throw new StepFailed(`pi has not loaded the examples:\n${printed}`);
}

try {
  const tarball = await pack();
  await lint(tarball);
  await install(tarball);
  readSchemas();
  followLinks();
  await useProgram();
  await importEntries();
  await bundleForPage();
  await typeCheck();
  await loadInPi();
} catch (error) {
  if (!(error instanceof StepFailed)) throw error;
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
