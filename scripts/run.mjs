// Runs a TypeScript file of this checkout with a supported Node, after installing missing dependencies. Plain
// JavaScript, because the Node that starts it may be too old for TypeScript.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { isatty } from "node:tty";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bundledNode = join(root, "node_modules", "node", "bin", "node");

function fail(message) {
  process.stderr.write(`pi-rpcd: ${message}\n`);
  process.exit(1);
}

/**
 * Whether node_modules matches package-lock.json. npm writes its own list last, so an interrupted install has none.
 * Packages for other platforms are optional, and not checked.
 */
function installed() {
  try {
    const have = JSON.parse(readFileSync(join(root, "node_modules", ".package-lock.json"), "utf8")).packages;
    const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
    return Object.entries(wanted).every(
      ([path, { version, optional, devOptional }]) =>
        path === "" ||
        optional ||
        devOptional ||
        (have[path]?.version === version && existsSync(join(root, path, "package.json"))),
    );
  } catch {
    return false;
  }
}

async function install() {
  // npm empties the link's target, which other checkouts may be using.
  if (lstatSync(join(root, "node_modules"), { throwIfNoEntry: false })?.isSymbolicLink()) {
    fail("node_modules is a link whose target does not match package-lock.json. Install there, or remove the link.");
  }
  process.stderr.write("pi-rpcd: installing dependencies (once)\n");
  // A user's npm may omit development dependencies, or refuse an old Node: both are overridden here.
  const options = ["--include=dev", "--no-engine-strict", "--no-audit", "--no-fund", "--loglevel=error"];
  const { code, error } = await run("npm", ["ci", ...options], { cwd: root, stdio: ["ignore", 2, 2] });
  if (error !== undefined) fail(`Cannot start npm (${error.message}). Install npm, then run this again.`);
  if (code >= 128) process.exit(code);
  if (code !== 0) {
    fail("npm ci failed (its messages are above). Check the connection to the npm registry, then run this again.");
  }
}

/**
 * A checkout runs its TypeScript without a build, and its tests need this Node. The published package runs on 22.19.
 */
function supported(version) {
  return Number(version.split(".")[0]) >= 24;
}

/** The Node to run with: this one if it is new enough, otherwise that of the devDependency `node`. */
function chooseNode() {
  if (supported(process.versions.node)) return process.execPath;
  if (!existsSync(bundledNode)) {
    // An npm that ignores install scripts leaves this package without its binary.
    const installer = join(root, "node_modules", "node", "installArchSpecificPackage.js");
    spawnSync(process.execPath, [installer], { cwd: dirname(installer), stdio: ["ignore", 2, 2] });
  }
  if (!existsSync(bundledNode)) {
    fail(`A checkout needs Node 24, this is ${process.versions.node}, and the npm package "node" brought none.`);
  }
  return bundledNode;
}

/** Runs a command to its end and forwards signals to it. */
function run(command, args, options) {
  return new Promise((resolve) => {
    const child = spawn(command, args, options);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.on(signal, () => {
        // A terminal sends SIGINT to the whole group: the child already has it, and this process waits for its end.
        if (signal !== "SIGINT" || !isatty(0)) child.kill(signal);
      });
    }
    child.on("error", (error) => resolve({ code: 1, error }));
    child.on("exit", (code, signal) => resolve({ code: code ?? 128 + (constants.signals[signal] ?? 0) }));
  });
}

const [script, ...args] = process.argv.slice(2);
if (script === undefined) fail("usage: node scripts/run.mjs FILE [ARGUMENTS]");
if (!installed()) await install();

const node = chooseNode();
const { code, error } = await run(node, ["--disable-warning=ExperimentalWarning", resolve(root, script), ...args], {
  stdio: "inherit",
  // Programs that are found on PATH, such as `pi`, must run with the same Node.
  env: { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH ?? ""}` },
});
if (error !== undefined) fail(`Cannot start ${node}: ${error.message}`);
process.exit(code);
