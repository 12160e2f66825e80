import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withCommandReference } from "./lib/command-reference.ts";
import { withSettings } from "./lib/configuration-document.ts";
import { withGeneratedParts } from "./lib/protocol-document.ts";
import { retriesText } from "./lib/retries-text.ts";
import { wireText } from "./lib/wire-text.ts";

// Writes the files that derive from the tables of methods, settings and commands: protocol/wire.txt, client/retries.ts, and
// parts of PROTOCOL.md, CONFIGURATION.md and README.md. With --check it only compares.
const root = join(import.meta.dirname, "..");

const wanted: Readonly<Record<string, string>> = {
  "protocol/wire.txt": wireText(),
  "client/retries.ts": retriesText(),
  "CONFIGURATION.md": withSettings(read("CONFIGURATION.md")),
  "PROTOCOL.md": withGeneratedParts(read("PROTOCOL.md")),
  "docs/cli.md": withCommandReference(read("docs/cli.md")),
};

for (const [file, text] of Object.entries(wanted)) {
  if (read(file) === text) continue;
  if (process.argv.includes("--check")) {
    console.error(`${file} is out of date. Run: npm run schema`);
    process.exitCode = 1;
  } else {
    writeFileSync(join(root, file), text);
  }
}

function read(file: string): string {
  try {
    return readFileSync(join(root, file), "utf8");
  } catch {
    return "";
  }
}
