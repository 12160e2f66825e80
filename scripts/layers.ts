import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkLayers } from "./lib/layers.ts";

// Checks that every import is allowed by the layer table.
const root = join(import.meta.dirname, "..");
const outside = new Set(["node_modules", "dist", "coverage", ".cache", ".git"]);
const files = globSync("**/*.{ts,tsx}", { cwd: root, exclude: (path) => outside.has(path) });
const sources = new Map(files.map((file) => [file.replaceAll("\\", "/"), readFileSync(join(root, file), "utf8")]));

for (const { file, line, message } of checkLayers(sources)) {
  console.error(`${file}:${line} ${message}`);
  process.exitCode = 1;
}
