import { dirname, join } from "node:path";
import { readFileSync } from "./node-builtins.ts";

/** The version in this package's manifest: one directory up in a checkout, two in the published package. */
export function packageVersion(): string {
  for (let folder = import.meta.dirname; folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, unknown>;
      if (manifest["name"] === "pi-rpcd") return String(manifest["version"]);
    } catch {
      // Not in this directory; try the next one.
    }
  }
  throw new Error("pi-rpcd's own package.json is missing. Install the package again.");
}
