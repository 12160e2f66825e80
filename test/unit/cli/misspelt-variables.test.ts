import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { noteMisspelt } from "../../../cli/misspelt-variables.ts";
import { memoryOutput } from "./memory-output.ts";

function notes(env: NodeJS.ProcessEnv): string {
  const { output, stderr } = memoryOutput();
  noteMisspelt(env, output);
  return stderr();
}

test.each([
  ["PI_RPCD_IDLE_AFTR", "PI_RPCD_IDLE_AFTER_MS"],
  ["PI_RPCD_PROT", "PI_RPCD_PORT"],
  ["PI_RPCD_STATEDIR", "PI_RPCD_STATE_DIR"],
  ["PI_RPCD_MAX_CHILD", "PI_RPCD_MAX_CHILDREN"],
])("the misspelt variable %s is noted with %s", (name, near) => {
  expect(notes({ [name]: "3" })).toBe(`pi-rpcd: ${name} has no effect. Did you mean ${near}?\n`);
});

test("no variable that the program, its tests or its benchmarks use is noted", () => {
  const root = join(import.meta.dirname, "..", "..", "..");
  const files = [":(glob)**/*.ts", ":(exclude)test/unit/cli/misspelt-variables.test.ts"];
  const found = execFileSync("git", ["grep", "-ohE", "PI_RPCD_[A-Z_]+[A-Z]", "--", ...files], { cwd: root }).toString();
  const names = [...new Set(found.trim().split("\n")), "PI_RPCD_SOMETHING_ELSE", "PI_RPCD_X"];
  expect(names.length).toBeGreaterThan(20);
  expect(notes(Object.fromEntries(names.map((name) => [name, "1"])))).toBe("");
});
