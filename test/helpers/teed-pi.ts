import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { piUnderTest } from "./pi-versions.ts";

/** pi itself, with a copy of its stdout in a file. */
export function teedPi(): { readonly pi: string; readonly records: () => string[] } {
  const directory = mkdtempSync(join(tmpdir(), "tee-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const pi = join(directory, "pi.mjs");
  const file = join(directory, "stdout");
  writeFileSync(file, "");
  writeFileSync(
    pi,
    `import { appendFileSync } from "node:fs";
     const write = process.stdout.write.bind(process.stdout);
     if (!process.argv.includes("--version")) {
       process.stdout.write = (chunk, ...rest) => {
         appendFileSync(${JSON.stringify(file)}, chunk);
         return write(chunk, ...rest);
       };
     }
     process.argv[1] = ${JSON.stringify(piUnderTest().cli)};
     await import(process.argv[1]);`,
  );
  return {
    pi,
    records: () =>
      readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== ""),
  };
}

/** Whether a record of pi's is an event for clients: not a response, and not a frame of the helper. */
export function isEvent(record: string): boolean {
  const { type, method, statusKey } = JSON.parse(record) as Record<string, unknown>;
  return type !== "response" && !(method === "setStatus" && String(statusKey).startsWith("pi-rpcd"));
}
