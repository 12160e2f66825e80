import { expect, test } from "vitest";
import { Scene } from "../e2e/cli/scene.ts";
import { program } from "../helpers/programs.ts";
import { Terminal } from "./terminal.ts";

test("a daemon in the foreground of a terminal prints readable logs, and ends with Ctrl-C", async () => {
  await using scene = await Scene.open();
  const args = ["start", "--foreground", "--log-level", "debug"];
  await using terminal = await Terminal.open([...program, ...args], { cwd: scene.cwd, env: scene.env });
  await terminal.shows(/^\d{4}-\d\d-\d\dT\S+Z INFO {2}listening /m);
  await terminal.shows(/^pi-rpcd \S+ \(process \d+\) listens at http/m);
  await scene.json(["ls"]);
  await terminal.press("C-c");
  expect(await terminal.exitCode()).toBe(0);
  expect(scene.daemonFile).toBeUndefined();
  const text = await terminal.text();
  expect(text).toMatch(/INFO {2}ending why=/);
  expect(text).not.toMatch(/"level":|\{"time/);
});
