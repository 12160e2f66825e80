import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openApiDocument } from "../protocol/openapi.ts";
import { openRpcDocument } from "../protocol/openrpc.ts";
import { configurationSchema } from "../server/configuration/settings.ts";
import { withCommandReference } from "./lib/command-reference.ts";
import { withSettings } from "./lib/configuration-document.ts";
import { withGeneratedParts } from "./lib/protocol-document.ts";
import { wireText } from "./lib/wire-text.ts";

// Writes what derives from the tables of methods, settings and commands: protocol/wire.txt, protocol/schema/, and parts of PROTOCOL.md,
// CONFIGURATION.md and README.md. With --check it only compares.
const root = join(import.meta.dirname, "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

const wanted: Readonly<Record<string, string>> = {
  "protocol/wire.txt": wireText(),
  "protocol/schema/openrpc.json": `${JSON.stringify(openRpcDocument(version), null, 2)}\n`,
  "protocol/schema/config.schema.json": `${JSON.stringify(configurationSchema(), null, 2)}\n`,
  "CONFIGURATION.md": withSettings(read("CONFIGURATION.md")),
  "protocol/schema/openapi.json": `${JSON.stringify(openApiDocument(version), null, 2)}\n`,
  "PROTOCOL.md": withGeneratedParts(read("PROTOCOL.md")),
  "README.md": withCommandReference(read("README.md")),
};

for (const [file, text] of Object.entries(wanted)) {
  if (read(file) === text) continue;
  if (process.argv.includes("--check")) {
    console.error(`${file} is not what the tables and the limits say. Run: npm run schema`);
    process.exitCode = 1;
  } else {
    mkdirSync(dirname(join(root, file)), { recursive: true });
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
