// Runs a TypeScript file of this checkout with a Node that pi accepts, after installing what is missing.
// Plain JavaScript on purpose: the Node that starts it may be too old for everything else here.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bundledNode = join(root, "node_modules", "node", "bin", "node");

function fail(message) {
  process.stderr.write(`pi-rpcd: ${message}\n`);
  process.exit(1);
}

/** npm writes node_modules/.package-lock.json last, so it is newer than the lock file once an install has ended well. */
function installed() {
  try {
    const done = statSync(join(root, "node_modules", ".package-lock.json"));
    const wanted = readFileSync(join(root, "package-lock.json"), "utf8");
    const have = JSON.parse(readFileSync(join(root, "node_modules", ".package-lock.json"), "utf8"));
    const packages = JSON.parse(wanted).packages;
    return (
      done.isFile() &&
      Object.entries(packages).every(
        ([path, entry]) => path === "" || entry.optional || have.packages[path]?.version === entry.version,
      )
    );
  } catch {
    return false;
  }
}

function install() {
  process.stderr.write("pi-rpcd: installing dependencies (once)\n");
  const npm = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  });
  if (npm.error !== undefined) fail(`npm could not be started (${npm.error.message}). Install npm, then run this again.`);
  if (npm.status !== 0) {
    fail("npm ci failed (its messages are above). Check that the npm registry can be reached, then run this again.");
  }
}

function supported(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 19);
}

/** The Node to run with: this one if pi accepts it, else the one that the devDependency `node` brings. */
function chooseNode() {
  if (supported(process.versions.node)) return process.execPath;
  if (!existsSync(bundledNode)) {
    // An npm that was told to ignore install scripts leaves this package without its binary.
    const installer = join(root, "node_modules", "node", "installArchSpecificPackage.js");
    spawnSync(process.execPath, [installer], { cwd: dirname(installer), stdio: ["ignore", 2, 2] });
  }
  if (!existsSync(bundledNode)) {
    fail(`Node ${process.versions.node} is too old: pi needs 22.19 or newer, and the npm package "node" brought none.`);
  }
  return bundledNode;
}

const [script, ...args] = process.argv.slice(2);
if (script === undefined) fail("usage: node scripts/run.mjs FILE [ARGUMENTS]");
if (!installed()) install();

const node = chooseNode();
const child = spawn(node, ["--disable-warning=ExperimentalWarning", resolve(root, script), ...args], {
  stdio: "inherit",
});
// A terminal sends its signals to the whole group; this process stays until the child has had its say.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => fail(`${node} could not be started: ${error.message}`));
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
