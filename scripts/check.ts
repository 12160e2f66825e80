import { bin, type CommandOutcome, root, run } from "./lib/command.ts";

// All checks other than tests. Each check prints one line, and its output only if it fails.

interface Check {
  readonly name: string;
  readonly run: () => Promise<CommandOutcome>;
  /** A command that fixes some findings automatically. */
  readonly fix?: string;
}

const script = (file: string, ...args: string[]): Promise<CommandOutcome> =>
  run(process.execPath, ["--disable-warning=ExperimentalWarning", `scripts/${file}`, ...args]);

const biomeOptions = ["--error-on-warnings", "--reporter=concise", "--max-diagnostics=50", "--colors=off"];

const checks: readonly Check[] = [
  { name: "package", run: () => script("check-package.ts") },
  { name: "README", run: () => script("check-readme.ts") },
  { name: "types", run: () => run(bin("tsc"), ["-p", "."]) },
  { name: "types of web", run: () => run(bin("tsc"), ["-p", "web"]) },
  { name: "format and lint", run: () => run(bin("biome"), ["ci", ...biomeOptions, "."]), fix: "npm run format" },
  { name: "promises", run: () => run(bin("oxlint"), ["--deny-warnings"]) },
  { name: "layers", run: () => script("layers.ts") },
  { name: "unused code", run: () => run(bin("knip"), ["--no-progress", "--no-config-hints"]) },
  { name: "schema", run: () => script("schema.ts", "--check") },
];

const atOnce = 2;

async function runCheck({ name, run: start, fix }: Check): Promise<boolean> {
  const startedAt = performance.now();
  const { code, output } = await start();
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${code === 0 ? "ok    " : "FAILED"}  ${name.padEnd(16)} ${seconds.padStart(5)} s`);
  if (code !== 0) console.log(`\n${output.trimEnd()}\n${fix === undefined ? "" : `Automatic fixes: ${fix}\n`}`);
  return code === 0;
}

const waiting = [...checks];
const results: boolean[] = [];
async function worker(): Promise<void> {
  for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) results.push(await runCheck(check));
}
process.chdir(root);
await Promise.all(Array.from({ length: atOnce }, worker));

const failed = results.filter((passed) => !passed).length;
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
