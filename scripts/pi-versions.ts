import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

// The versions of pi that the tests use, and how to download the one that is not a dependency.

const root = join(import.meta.dirname, "..");

interface Tarball {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
  /** Its target folder, relative to the version's folder. */
  readonly into: string;
}

/** pi's bundle needs only the packages with which it loads extensions. */
const tarballs: readonly Tarball[] = [
  {
    name: "@earendil-works/pi-coding-agent",
    version: "1.5.2",
    integrity: "sha512-mUWI04rqF1Vd/m1q+Ps1XeWsTXEVvRUnsmRa83I3Dzua0Tx5bYS93imeqtIfrXf7PkkaR6ERz+AuQhIJlom5yA==",
    into: ".",
  },
  {
    name: "jiti",
    version: "2.7.0",
    integrity: "sha512-AC/7JofJvZGrrneWNaEnJeOLUx+JlGt7tNa0wZiRPT4MY1wmfKjt2+6O2p2uz2+skll8OZZmJMNqeke7kKbNgQ==",
    into: "node_modules/jiti",
  },
  {
    name: "typebox",
    version: "1.3.27",
    integrity: "sha512-zu+jc1pcy4UiNThxikUr36f0Rybk9PEeCg/NE6adeWr/SKsdNO4EzZHYRDlv2YCVAfj3Odq3dESSo/jNyoBXzA==",
    into: "node_modules/typebox",
  },
];

const cli = join("dist", "bundle", "cli.js");
const cached = join(root, ".cache", "pi", "1.5.2");

/** Each version's program; the second exists once {@link ensurePi} has returned. */
export const piVersions = {
  "0.87.1": join(root, "node_modules", "@earendil-works", "pi-coding-agent", cli),
  "1.5.2": join(cached, cli),
} as const;

/**
 * Downloads pi 1.5.2 with the user's npm if it is missing. It appears in the cache atomically, so interrupted or
 * concurrent calls do no harm. Throws an error that says what to do.
 */
export function ensurePi(): void {
  if (existsSync(piVersions["1.5.2"])) return;
  process.stderr.write("pi-rpcd: downloading pi 1.5.2 for the tests (once)\n");
  mkdirSync(join(cached, ".."), { recursive: true });
  const staging = mkdtempSync(`${cached}.partial-`);
  try {
    const unpacked = join(staging, "unpacked");
    for (const tarball of tarballs) unpack(tarball, download(tarball, staging), join(unpacked, tarball.into));
    publish(unpacked);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function download({ name, version, integrity }: Tarball, folder: string): string {
  const packed = spawnSync(
    "npm",
    ["pack", `${name}@${version}`, "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", folder],
    { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 300_000 },
  );
  if (packed.status !== 0) {
    throw new Error(
      `The tests also run against pi 1.5.2, which is downloaded once with "npm pack ${name}@${version}". That failed, ` +
        "so the npm registry of your npm configuration probably cannot be reached. Fix that and run the tests again, " +
        `or run only the other tests: npm test -- --project unit --project contract --project pi-0.87.1. npm said:\n${packed.error?.message ?? packed.stderr}`,
    );
  }
  const [{ filename }] = JSON.parse(packed.stdout) as [{ readonly filename: string }];
  const file = join(folder, filename);
  const found = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
  if (found !== integrity) {
    throw new Error(`${name}@${version} is not the package that scripts/pi-versions.ts names: its hash is ${found}`);
  }
  return file;
}

function unpack({ name }: Tarball, file: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const tar = spawnSync("tar", ["-xzf", file, "-C", folder, "--strip-components=1"], { encoding: "utf8" });
  if (tar.status !== 0) throw new Error(`tar could not unpack ${name}: ${tar.error?.message ?? tar.stderr}`);
}

function publish(unpacked: string): void {
  try {
    renameSync(unpacked, cached);
  } catch (error) {
    // Another run finished first: renaming to a folder that is not empty fails.
    if (!existsSync(piVersions["1.5.2"])) throw error;
  }
}
