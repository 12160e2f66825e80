#!/usr/bin/env node
// No imports before this check: an old Node could not parse them.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `pi-rpcd: Node ${process.versions.node} is too old; pi-rpcd and pi need Node 22.19 or newer (https://nodejs.org).\n`,
  );
  process.exit(1);
}
// Without a listener, SIGUSR1 opens Node's inspector to all users of the machine. A started daemon has a flag for this.
process.on("SIGUSR1", () => {});
if (import.meta.filename.endsWith(".js")) (await import("./compile-cache.ts")).keepCompiled();
const { run } = await import("./run.ts");
await run(process.argv.slice(2));

export {};
