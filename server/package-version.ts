import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The version in this package's own manifest, one folder up in a checkout and two in the published package. */
export function packageVersion(): string {
  for (let directory = import.meta.dirname; directory !== dirname(directory); directory = dirname(directory)) {
    try {
      const manifest = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as {
        name?: string;
        version?: string;
      };
      if (manifest.name === "pi-rpcd" && manifest.version !== undefined) return manifest.version;
    } catch {
      // Not here; try one folder up.
    }
  }
  throw new Error("pi-rpcd's own package.json is missing. Install the package again.");
}
