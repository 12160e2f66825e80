import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MethodRow } from "../protocol/method-row.ts";
import { methods } from "../protocol/methods.ts";
import { incomingText } from "./lib/acp-schemas.ts";
import { withCommandReference, withGeneratedParts, withSettings } from "./lib/documents.ts";
import { wireText } from "./lib/wire-text.ts";

// Writes the files that derive from the tables of methods, settings and commands: protocol/wire.txt, client/retries.ts,
// acp/schema/incoming.ts and incoming-v2.ts from the schemas of ACP, and parts of PROTOCOL.md, CONFIGURATION.md and docs/cli.md. With --check it only compares.
const root = join(import.meta.dirname, "..");

const wanted: Readonly<Record<string, string>> = {
  "protocol/wire.txt": wireText(),
  "client/retries.ts": retriesText(),
  "acp/schema/incoming.ts": incomingText("v1"),
  "acp/schema/incoming-v2.ts": incomingText("v2"),
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

/** The source of `client/retries.ts`: the client does not load the method table, which is too large for a browser. */
function retriesText(): string {
  const rows = Object.entries<MethodRow>(methods).map(([name, { retry, key = "idempotencyKey" }]) => {
    return `  "${name}": "${retry === "keyed" ? key : retry}",`;
  });
  return [
    'import type { MethodName } from "../protocol/methods.ts";',
    "",
    "/** What to do with a call whose answer was lost. A param's name: repeat it with the same key in this param. */",
    'export type Retry = "safe" | "never" | "idempotencyKey" | "deliveryId";',
    "",
    "/** The column `retry` of the method table. Written by `npm run schema`; do not edit. */",
    "export const retries: Readonly<Record<MethodName, Retry>> = {",
    ...rows,
    "};",
    "",
  ].join("\n");
}
