import { chmodSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bin, root, run } from "./lib/command.ts";

// Compiles the published folders into an empty dist/.
const dist = join(root, "dist");
const program = join(dist, "cli", "main.js");

rmSync(dist, { recursive: true, force: true });
const { code, output } = await run(bin("tsc"), ["-p", "tsconfig.build.json"]);
process.stderr.write(output);
if (existsSync(program)) chmodSync(program, 0o755);
process.exitCode = code;
