import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { InterruptedError } from "../../../cli/errors.ts";
import { buildWeb } from "../../../cli/web-build.ts";

const script = `
import { appendFileSync, mkdirSync } from "node:fs";
mkdirSync("dist/web", { recursive: true });
appendFileSync("dist/web/files.json", "built ");
`;

/** A checkout with this script for the build, unless it is undefined. */
function checkout(build: string | undefined) {
  const root = mkdtempSync(join(tmpdir(), "web-build-"));
  for (const folder of ["web", "client", "protocol", "scripts"]) {
    mkdirSync(join(root, folder));
    writeFileSync(join(root, folder, "source.ts"), "");
  }
  if (build !== undefined) writeFileSync(join(root, "scripts", "build-web.ts"), build);
  return {
    root,
    built: join(root, "dist", "web", "files.json"),
    build: (signal: AbortSignal = new AbortController().signal) => buildWeb({ root, env: process.env, signal }),
    [Symbol.dispose]: () => rmSync(root, { recursive: true }),
  };
}

test("a checkout builds the page when a source is newer than its files, and a package without the script never", async () => {
  using here = checkout(script);
  await here.build();
  await here.build();
  expect(readFileSync(here.built, "utf8")).toBe("built ");
  const later = new Date(Date.now() + 60_000);
  for (const folder of ["web", "client", "protocol"]) {
    utimesSync(here.built, later, later);
    await here.build();
    utimesSync(join(here.root, folder, "source.ts"), later, later);
    await here.build();
    utimesSync(join(here.root, folder, "source.ts"), 0, 0);
  }
  expect(readFileSync(here.built, "utf8")).toBe("built ".repeat(4));
  using installed = checkout(undefined);
  await installed.build();
  expect(existsSync(installed.built)).toBe(false);
});

test("a build that fails is reported with the end of what it said, and an interrupt ends it", async () => {
  using here = checkout('console.error("first\\nUnexpected token"); process.exit(3);');
  await expect(here.build()).rejects.toMatchObject({
    kind: "web_build_failed",
    message: "The web console could not be built: exit code 3.",
    lines: ["first", "Unexpected token"],
  });
  using slow = checkout("setInterval(() => {}, 1_000);");
  const interruption = new AbortController();
  const building = slow.build(interruption.signal);
  interruption.abort(new InterruptedError("SIGINT"));
  await expect(building).rejects.toMatchObject({ name: "InterruptedError" });
});
