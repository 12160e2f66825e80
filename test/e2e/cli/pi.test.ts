import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { Scene } from "./scene.ts";

/** A pi that is the one under test, except for a few first arguments. */
function changedPi(scene: Scene): string {
  const path = join(scene.root, "changed-pi.mjs");
  writeFileSync(
    path,
    `const [, , first, ...rest] = process.argv;
if (first === "--facts") {
  process.stdin.pipe(process.stdout);
  console.log(JSON.stringify({ rest, agentDir: process.env.PI_CODING_AGENT_DIR, cwd: process.cwd() }));
  process.exitCode = 7;
} else if (first === "--linger") {
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => process.exit(9));
  setInterval(() => {}, 60_000);
  console.log("ready");
} else if (first === "--die") {
  process.kill(process.pid, "SIGKILL");
} else {
  await import(${JSON.stringify(piUnderTest().cli)});
}
`,
  );
  return path;
}

test("pi runs the daemon's pi with its own arguments and exit code, and starts no daemon", async () => {
  await using scene = await Scene.open();
  const shown = await scene.run(["pi", "--version"]);
  expect(shown).toEqual({ code: 0, signal: null, stdout: `${piUnderTest().version}\n`, stderr: "" });
  expect((await scene.run(["pi", "--", "--help"])).stdout).toContain("--mode");

  const agentDir = join(scene.root, "agent-of-daemon");
  mkdirSync(agentDir);
  const env = { PI_RPCD_AGENT_DIR: agentDir };
  const words = ["--facts", "--json", "--help", "--", "a b"];
  const { code, stdout } = await scene.run(["pi", "--pi", changedPi(scene), ...words], { env, stdin: "typed\n" });
  const [facts = "", typed] = stdout.split("\n");
  expect([code, typed]).toEqual([7, "typed"]);
  expect(JSON.parse(facts)).toEqual({ rest: words.slice(1), agentDir, cwd: scene.cwd });
  expect(scene.daemonFile).toBeUndefined();
});

test("pi runs the pi of the running daemon, and waits for it when a signal comes", async () => {
  await using scene = await Scene.open();
  await scene.json(["start", "--pi", changedPi(scene)]);
  const running = scene.start(["pi", "--linger"]);
  await running.said(/ready/);
  // A terminal would send it to pi, too, which continues.
  running.kill("SIGINT");
  running.kill("SIGINT");
  running.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: 9, signal: null });
  expect(await scene.run(["pi", "--die"])).toMatchObject({ code: 128 + 9 });
});

test("pi says which pi does not exist", async () => {
  await using scene = await Scene.open();
  const { code, stderr } = await scene.run(["pi", "--pi", "/no/such/pi.js"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("/no/such/pi.js does not exist")]);
});
