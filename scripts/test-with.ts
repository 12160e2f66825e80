import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { root } from "./lib/command.ts";

// Runs the tests that need programs which npm does not bring: `test-with.ts editors|screen`, further arguments go to
// vitest. The last line is `N passed, N failed`; the exit code is 3 where a program is missing and nothing was run.

/** Programs, with the Debian packages that have them. */
const suites: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  editors: { emacs: "emacs-nox", nvim: "neovim" },
  screen: { chromium: "chromium", tmux: "tmux" },
};

function isOnPath(program: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const [suite = "", ...args] = process.argv.slice(2);
const programs = suites[suite];
if (programs === undefined) throw new Error(`Which tests? There are: ${Object.keys(suites).join(", ")}.`);
const missing = Object.entries(programs).filter(([program]) => !isOnPath(program));
for (const [program, name] of missing) console.log(`not run: ${program} is missing (Debian package ${name})`);
if (missing.length > 0) {
  console.log("0 passed, 0 failed");
  process.exitCode = 3;
} else {
  const test = spawn(
    process.execPath,
    [join(root, "scripts", "test.ts"), "--config", `test/${suite}/vitest.config.ts`, ...args],
    { cwd: root, stdio: ["ignore", "inherit", "inherit"] },
  );
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => test.kill(signal));
  const [code] = (await once(test, "exit")) as [number | null];
  process.exitCode = code ?? 1;
}
