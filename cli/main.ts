#!/usr/bin/env node
// Nothing modern before this check: an older Node must still be able to read the sentence.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`pi-rpcd: Node ${process.versions.node} is too old; pi needs 22.19 or newer.\n`);
  process.exit(1);
}
const { run } = await import("./run.ts");
process.exitCode = await run(process.argv.slice(2));

export {};
