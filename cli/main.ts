#!/usr/bin/env node
// Nothing is imported before the check: an old Node could not even read it.
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `pi-rpcd: Node ${process.versions.node} is too old; pi-rpcd and pi need Node 22.19 or newer (https://nodejs.org).\n`,
  );
  process.exit(1);
}
// Without a listener Node opens its inspector to all users of the machine: a started daemon has a flag, others have none.
process.on("SIGUSR1", () => {});
if (import.meta.filename.endsWith(".js")) await keepCompiled();
const { run } = await import("./run.ts");
await run(process.argv.slice(2));

/** Has Node keep what it compiles of this program, for the next start; without it where that cannot be. */
async function keepCompiled(): Promise<void> {
  const { default: module } = await import("node:module");
  const { XDG_CACHE_HOME: cacheHome, HOME: home } = process.env;
  const folder =
    cacheHome?.startsWith("/") === true ? cacheHome : home?.startsWith("/") === true ? `${home}/.cache` : "";
  if (folder === "") return;
  const { makePrivateDirectory } = await import("../server/lib/private-directory.ts");
  try {
    // Node executes what it finds there without checking who wrote it.
    module.enableCompileCache(makePrivateDirectory(`${folder}/pi-rpcd/compiled`));
  } catch {
    // Every start compiles the program.
  }
}

export {};
