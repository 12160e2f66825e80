import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { runs } from "../../../../cli/process-facts.ts";
import { piUnderTest } from "../../../helpers/pi-versions.ts";
import { lines, Scene } from "../scene.ts";

const states = ["accepted", "held", "inserted", "prepared", "delivered", "answered"];

interface Step {
  readonly kind: string;
  readonly state?: string;
  readonly holds?: boolean;
  readonly pid?: number;
}

/** Directories left by demos; each scene has its own place for them. */
function demoDirectories({ root }: Scene): readonly string[] {
  return readdirSync(root).filter((name) => name.startsWith("pi-rpcd-demo-"));
}

test("the demo shows every state of the receipt and exits with 0", async () => {
  await using scene = await Scene.open();
  const { code, stdout, stderr } = await scene.run(["demo"], { env: { TMPDIR: scene.root } });
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout).toContain(`pi ${piUnderTest().version}`);
  const shown = states.map((state) => stdout.search(new RegExp(`s  ${state} `)));
  expect(shown).toEqual(shown.toSorted((a, b) => a - b));
  expect(shown[0]).toBeGreaterThan(0);
  expect(stdout.match(/✔/g)).toHaveLength(5);
  expect(stdout).toMatch(/All checks passed\. \d+\.\d s, no process and no file was left\.\n$/);
  expect(demoDirectories(scene)).toEqual([]);
});

test("the demo reports the same as JSON, and leaves neither process nor file", async () => {
  await using scene = await Scene.open();
  const { code, stdout } = await scene.run(["demo", "--json"], { env: { TMPDIR: scene.root } });
  expect(code).toBe(0);
  const steps = lines<Step>(stdout);
  expect(steps.filter(({ kind }) => kind === "receipt").map(({ state }) => state)).toEqual(states);
  expect(steps.filter(({ kind }) => kind === "check").map(({ holds }) => holds)).toEqual([
    true,
    true,
    true,
    true,
    true,
  ]);
  expect(steps.at(-1)).toMatchObject({ kind: "end", ok: true });
  const pids = steps.flatMap(({ pid }) => pid ?? []);
  expect(pids).toHaveLength(2);
  expect(pids.filter(runs)).toEqual([]);
});
