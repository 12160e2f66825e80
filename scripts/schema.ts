import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openRpcDocument } from "../protocol/openrpc.ts";

// Writes protocol/schema/openrpc.json from the method table; with --check it only compares.
const root = join(import.meta.dirname, "..");
const file = join(root, "protocol", "schema", "openrpc.json");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const wanted = `${JSON.stringify(openRpcDocument(version), null, 2)}\n`;

if (process.argv.includes("--check")) {
  let have = "";
  try {
    have = readFileSync(file, "utf8");
  } catch {
    // Reported as a difference below.
  }
  if (have !== wanted) {
    console.error("protocol/schema/openrpc.json is not what protocol/ says. Run: npm run schema");
    process.exitCode = 1;
  }
} else {
  mkdirSync(join(root, "protocol", "schema"), { recursive: true });
  writeFileSync(file, wanted);
}
