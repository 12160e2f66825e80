import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withGeneratedParts } from "./lib/protocol-document.ts";

// Writes the generated parts of PROTOCOL.md; with --check it only compares.
const file = join(import.meta.dirname, "..", "PROTOCOL.md");
const have = readFileSync(file, "utf8");
const wanted = withGeneratedParts(have);

if (!process.argv.includes("--check")) writeFileSync(file, wanted);
else if (have !== wanted) {
  console.error("PROTOCOL.md is not what protocol/ and the limits say. Run: npm run schema");
  process.exitCode = 1;
}
