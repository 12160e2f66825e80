#!/usr/bin/env node
// Stands where a front end expects `pi`. Without a listener, SIGUSR1 opens Node's inspector to all users of the machine.
process.on("SIGUSR1", () => {});
// Node's warnings would be on pi's stderr.
process.removeAllListeners("warning");
if (import.meta.filename.endsWith(".js")) (await import("../compile-cache.ts")).keepCompiled();
const { dropIn } = await import("./drop-in.ts");
const { argv, env, stderr } = process;
const code = await dropIn({ argv: argv.slice(2), env, isStrict: false }).catch((error: unknown) => {
  stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  return 1;
});
process.exit(code);

export {};
