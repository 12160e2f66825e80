import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { runs } from "../../../../cli/process-facts.ts";
import { lines, Scene } from "../scene.ts";

interface Step {
  readonly pid?: number;
}

/** Directories left by demos; each scene has its own place for them. */
function demoDirectories({ root }: Scene): readonly string[] {
  return readdirSync(root).filter((name) => name.startsWith("pi-rpcd-demo-"));
}

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s during the demo ends it and every process that it started",
  async (signal) => {
    await using scene = await Scene.open();
    const demo = scene.start(["demo", "--json"], { env: { TMPDIR: scene.root } });
    await demo.said(/"state":"held"/);
    demo.kill(signal);
    const { code, stdout } = await demo.ended;
    expect(code).toBe(signal === "SIGINT" ? 130 : 143);
    expect(
      lines<Step>(stdout)
        .flatMap(({ pid }) => pid ?? [])
        .filter(runs),
    ).toEqual([]);
    expect(demoDirectories(scene)).toEqual([]);
  },
);

test("a demo that fails reports what went wrong and what to do", async () => {
  await using scene = await Scene.open();
  const { code, stdout, stderr } = await scene.run(["demo", "--pi", "no-such-pi.js"], { env: { TMPDIR: scene.root } });
  expect(code).toBe(1);
  expect(stdout).not.toContain("All checks passed");
  expect(stderr).toMatch(/pi-rpcd: The demo failed after .*no-such-pi\.js.*--keep.*\(pi_not_found\)\n$/);
  expect(demoDirectories(scene)).toEqual([]);
});
