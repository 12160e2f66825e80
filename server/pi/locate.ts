import { randomUUID } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { delimiter, dirname, extname, join } from "node:path";
import type { Readable } from "node:stream";
import type { PiInfo } from "../../protocol/daemon.ts";
import { WireError } from "../../protocol/errors.ts";
import { CHILD_MARKER_ENV } from "../../protocol/link.ts";
import { within } from "../lib/deadline.ts";
import { capabilitiesOf, oldestSupportedPi } from "./capabilities.ts";
import { codeCaches } from "./code-caches.ts";
import { endMarked, signal } from "./processes.ts";
import { nodeFlags, type PiProgram } from "./spawn-options.ts";
import { startChild } from "./stdio.ts";
import { isAtLeast, parseVersion } from "./version.ts";

/** The program that front ends start instead of pi: it would find itself. */
const dropIn = join(import.meta.dirname, "..", "..", "cli", "rpc", `main${extname(import.meta.filename)}`);
const packageName = "@earendil-works/pi-coding-agent";
const versionTimeoutMs = 30_000;
const maxOutputChars = 64 * 1024;

export interface LocateOptions {
  /** `--pi`. */
  readonly option?: string | undefined;
  /** From the configuration file; an absolute path. */
  readonly configured?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Finds pi: the option, then `PI_RPCD_PI`, then the configuration file, then `pi` on PATH, then the package's own
 * dependency. Throws `pi_not_found` or `pi_too_old`. A configured pi that is missing is an error, never skipped.
 */
export async function locatePi(options: LocateOptions): Promise<PiProgram> {
  const { path, source } = candidate(options);
  const named = namedBy[source](path);
  if (existsSync(path) && realpathSync(path) === dropIn) {
    throw new WireError("pi_not_found", `${named} is pi-rpcd-pi, which is not pi itself. Name the real pi.`, {
      path,
      source,
    });
  }
  if (!existsSync(path) || !statSync(path).isFile()) {
    throw new WireError("pi_not_found", `${named} does not exist. Set the path of pi's cli.js or executable.`, {
      path,
      source,
    });
  }
  const real = realpathSync(path);
  const kind = isScript(real) ? "script" : "executable";
  if (kind === "executable") assertExecutable(path, named);
  const version = bundledVersion(real) ?? (await reportedVersion(kind, real, named));
  const parsed = parseVersion(version);
  if (parsed === undefined) {
    throw new WireError(
      "pi_not_found",
      `${named} is not pi: for --version it printed ${JSON.stringify(version.slice(0, 80))}.`,
      { path, source },
    );
  }
  if (!isAtLeast(parsed, oldestSupportedPi)) {
    throw new WireError(
      "pi_too_old",
      `${named} is pi ${version}; pi-rpcd needs ${oldestSupportedPi.join(".")} or newer. Update pi, or choose another with --pi.`,
      { path, source, version, needs: oldestSupportedPi.join(".") },
    );
  }
  return { kind, path: real, version, source, capabilities: capabilitiesOf(parsed) };
}

/** How messages describe each source of a path. */
const namedBy: Readonly<Record<PiInfo["source"], (path: string) => string>> = {
  option: (path) => `--pi ${path}`,
  environment: (path) => `PI_RPCD_PI=${path}`,
  configuration: (path) => `"pi" of the configuration, ${path}`,
  path: (path) => path,
  bundled: (path) => path,
};

function candidate({ option, configured, env }: LocateOptions): { path: string; source: PiInfo["source"] } {
  if (option !== undefined) return { path: option, source: "option" };
  const fromEnv = env["PI_RPCD_PI"];
  if (fromEnv !== undefined && fromEnv !== "") return { path: fromEnv, source: "environment" };
  if (configured !== undefined) return { path: configured, source: "configuration" };
  const bundled = bundledCli();
  for (const directory of (env["PATH"] ?? "").split(delimiter)) {
    const path = join(directory, "pi");
    // npm puts the bundled one first on PATH for its scripts; the user did not choose that pi.
    if (directory === "" || !existsSync(path)) continue;
    const real = realpathSync(path);
    if (real !== bundled && real !== dropIn) return { path, source: "path" };
  }
  if (bundled !== undefined) return { path: bundled, source: "bundled" };
  throw new WireError(
    "pi_not_found",
    `pi is not on PATH. Install it (npm install -g ${packageName}), or choose one with --pi.`,
  );
}

function bundledCli(): string | undefined {
  try {
    const manifest = findPackageJSON(packageName, import.meta.url);
    const cli = manifest === undefined ? "" : join(dirname(manifest), "dist", "bundle", "cli.js");
    return existsSync(cli) ? realpathSync(cli) : undefined;
  } catch {
    return undefined;
  }
}

function isScript(path: string): boolean {
  return /\.(?:[cm]?js|[cm]?ts)$/.test(path);
}

function assertExecutable(path: string, named: string): void {
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw new WireError("pi_not_found", `${named} is not executable. Check its permissions.`, { path }, { cause });
  }
}

/** The version in the package of the file, which avoids starting pi. */
function bundledVersion(path: string): string | undefined {
  for (let directory = dirname(path), up = 0; up < 4; up += 1, directory = dirname(directory)) {
    try {
      const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Record<string, unknown>;
      if (manifest["name"] === packageName && typeof manifest["version"] === "string") return manifest["version"];
    } catch {
      // Not here; try one folder up.
    }
  }
  return undefined;
}

/** Reported versions by path: starting a process costs a large daemon a quarter of a second each time. */
const knownVersions = new Map<
  string,
  { readonly inode: string; readonly at: number; readonly version: Promise<string> }
>();
const maxKnownVersions = 16;
/** A wrapper script does not change when the pi that it runs is updated. */
const keepVersionMs = 60_000;

async function reportedVersion(kind: PiProgram["kind"], path: string, named: string): Promise<string> {
  const { ino, size, mtimeMs, ctimeMs } = statSync(path);
  const inode = [ino, size, mtimeMs, ctimeMs].join(" ");
  const at = performance.now();
  const known = knownVersions.get(path);
  if (known?.inode === inode && at - known.at < keepVersionMs) return await known.version;
  const version = askVersion(kind, path, named);
  knownVersions.delete(path);
  knownVersions.set(path, { inode, at, version });
  for (const oldest of [...knownVersions.keys()].slice(0, -maxKnownVersions)) knownVersions.delete(oldest);
  try {
    return await version;
  } catch (error) {
    // The file may exist the next time.
    if (knownVersions.get(path)?.version === version) knownVersions.delete(path);
    throw error;
  }
}

/** Runs an unknown program: processes that it leaves are found only by their marker. */
async function askVersion(kind: PiProgram["kind"], path: string, named: string): Promise<string> {
  const id = randomUUID();
  const flags = ["--version"];
  let leader: number | undefined;
  try {
    const plan = {
      file: kind === "script" ? process.execPath : path,
      args: kind === "script" ? [...nodeFlags, path, ...flags] : flags,
      cwd: process.cwd(),
      env: { ...process.env, ...codeCaches(process.env).env, [CHILD_MARKER_ENV]: id },
    };
    const asked = await startChild(plan, maxOutputChars);
    const { pid, stdin, stdout, exited } = asked;
    leader = pid;
    stdin.on("error", () => {});
    stdin.end();
    const said = beginningOf(stdout);
    const ended = await within(exited, versionTimeoutMs);
    if (ended.kind === "timeout") {
      signal(-pid, "SIGKILL");
      throw new Error(`it did not end within ${versionTimeoutMs} ms`);
    }
    const { code, signal: endedBy } = ended.value;
    if (code !== 0)
      throw new Error(
        `it ended ${endedBy === null ? `with code ${code}` : `by ${endedBy}`} ${asked.stderrTail}`.trim(),
      );
    return said().trim();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    throw new WireError("pi_not_found", `Cannot read the version of ${named}: ${why}.`, { path }, { cause });
  } finally {
    await endMarked([id], leader === undefined ? {} : { leader });
  }
}

/** Reads a stream to its end and keeps its beginning. */
function beginningOf(stream: Readable): () => string {
  let text = "";
  stream.on("error", () => {});
  stream.on("data", (chunk: Buffer) => {
    text = (text + chunk.toString("utf8")).slice(0, maxOutputChars);
  });
  return () => text;
}
