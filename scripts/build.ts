import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openApiDocument } from "../protocol/openapi.ts";
import { openRpcDocument } from "../protocol/openrpc.ts";
import { configurationSchema } from "../server/configuration/settings.ts";
import { referencePage } from "../server/edge/reference-page.ts";
import { bin, root, run } from "./lib/command.ts";

// Compiles the published folders into an empty dist/, and writes the schemas and the reference.
const dist = join(root, "dist");
const program = join(dist, "cli", "main.js");

rmSync(dist, { recursive: true, force: true });
const { code, output } = await run(bin("tsc"), ["-p", "tsconfig.build.json"]);
process.stderr.write(output);
if (existsSync(program)) chmodSync(program, 0o755);
if (code === 0) writeReference();
process.exitCode = code;

function writeReference(): void {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly version: string };
  const schemas = {
    "openrpc.json": openRpcDocument(version),
    "openapi.json": openApiDocument(version),
    "config.schema.json": configurationSchema(),
  };
  mkdirSync(join(dist, "schema"));
  for (const [file, schema] of Object.entries(schemas))
    writeFileSync(join(dist, "schema", file), `${JSON.stringify(schema, null, 2)}\n`);
  writeFileSync(join(dist, "reference.html"), referencePage(version));
}
