import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openRpcDocument } from "../protocol/openrpc.ts";
import { configurationSchema } from "../server/configuration/settings.ts";
import { withSettings } from "./lib/configuration-document.ts";
import { withGeneratedParts } from "./lib/protocol-document.ts";

// Writes what derives from the method table and the table of settings: protocol/schema/ and parts of PROTOCOL.md and
// CONFIGURATION.md. With --check it only compares.
const root = join(import.meta.dirname, "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

const wanted: Readonly<Record<string, string>> = {
  "protocol/schema/openrpc.json": `${JSON.stringify(openRpcDocument(version), null, 2)}\n`,
  "protocol/schema/config.schema.json": `${JSON.stringify(configurationSchema(), null, 2)}\n`,
  "CONFIGURATION.md": withSettings(read("CONFIGURATION.md")),
  "PROTOCOL.md": withGeneratedParts(read("PROTOCOL.md")),
};

for (const [file, text] of Object.entries(wanted)) {
  if (read(file) === text) continue;
  if (process.argv.includes("--check")) {
    console.error(`${file} is not what protocol/ and the limits say. Run: npm run schema`);
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
