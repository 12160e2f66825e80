import { join } from "node:path";
import { run } from "./run.ts";

const fixtures = join(import.meta.dirname, "..", "fixtures");

/** Compiles a fixture. False without a C compiler. */
export async function compileC(fixture: string, options: readonly string[]): Promise<boolean> {
  const { code } = await run("cc", ["-O2", ...options, join(fixtures, fixture)], { stdout: "ignore" });
  return code === 0;
}
