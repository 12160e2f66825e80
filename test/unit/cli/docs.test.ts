import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { docs } from "../../../cli/docs.ts";
import { memoryOutput } from "./memory-output.ts";

/** A home, and a desktop whose `xdg-open` and `open` record their arguments. */
function stage() {
  const home = mkdtempSync(join(tmpdir(), "docs-"));
  for (const name of ["xdg-open", "open"]) {
    writeFileSync(join(home, name), `#!/bin/sh\necho "$1" > ${home}/next && mv ${home}/next ${home}/opened\n`);
    chmodSync(join(home, name), 0o755);
  }
  const run = async ({ json = false, isTerminal = false, env = {} } = {}) => {
    const { output, stdout } = memoryOutput({ json, isTerminal });
    const signal = new AbortController().signal;
    const all = { HOME: home, PATH: `${home}:/usr/bin:/bin`, ...env };
    expect(await docs({ options: {}, arguments: [], output, env: all, signal })).toBe(0);
    return stdout();
  };
  return {
    home,
    page: join(home, ".cache", "pi-rpcd", "reference.html"),
    run,
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}

test("writes the reference to a private file, and prints the path", async () => {
  using desk = stage();
  expect(await desk.run({ env: { DISPLAY: ":0" } })).toBe(`${desk.page}\n`);
  expect(readFileSync(desk.page, "utf8")).toMatch(/^<!doctype html>[\s\S]*<h3 id="sessioncreate">/);
  expect(statSync(desk.page).mode & 0o777).toBe(0o600);
  expect(statSync(join(desk.page, "..")).mode & 0o777).toBe(0o700);
  // A program reads the output, so no browser is opened.
  expect(existsSync(join(desk.home, "opened"))).toBe(false);
});

test("replaces a link of that name, and leaves its target unchanged", async () => {
  using desk = stage();
  await desk.run();
  const other = join(desk.home, "other");
  writeFileSync(other, "other");
  rmSync(desk.page);
  symlinkSync(other, desk.page);
  await desk.run();
  expect(readFileSync(other, "utf8")).toBe("other");
  expect(readFileSync(desk.page, "utf8")).toContain("<!doctype html>");
});

test("opens it in the browser if the output is a terminal on a desktop", async () => {
  using desk = stage();
  const said = JSON.parse(await desk.run({ json: true, isTerminal: true, env: { DISPLAY: ":0" } }));
  expect(said).toEqual({ path: desk.page, opened: true });
  await expect.poll(() => existsSync(join(desk.home, "opened"))).toBe(true);
  expect(readFileSync(join(desk.home, "opened"), "utf8")).toBe(`${desk.page}\n`);
});

// On macOS no variable says that there is no desktop, so the command always opens the page.
test.skipIf(process.platform === "darwin")(
  "opens nothing without a desktop, or without a program that opens files",
  async () => {
    using desk = stage();
    expect(JSON.parse(await desk.run({ json: true, isTerminal: true }))).toMatchObject({ opened: false });
    const env = { DISPLAY: ":0", PATH: "/nowhere" };
    expect(JSON.parse(await desk.run({ json: true, isTerminal: true, env }))).toMatchObject({ opened: false });
  },
);
