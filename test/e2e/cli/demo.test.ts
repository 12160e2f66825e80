import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { lines, Scene } from "./scene.ts";

const states = ["accepted", "held", "inserted", "prepared", "delivered", "answered"];

interface Step {
  readonly kind: string;
  readonly state?: string;
  readonly holds?: boolean;
  readonly pid?: number;
}

function demoDirectories(): readonly string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith("pi-rpcd-demo-"));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("the demo shows every state of the receipt and exits with 0", async () => {
  await using scene = await Scene.open();
  const { code, stdout, stderr } = await scene.run(["demo"]);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout).toContain(`pi ${piUnderTest().version}`);
  const shown = states.map((state) => stdout.search(new RegExp(`s  ${state} `)));
  expect(shown).toEqual(shown.toSorted((a, b) => a - b));
  expect(shown[0]).toBeGreaterThan(0);
  expect(stdout.match(/✔/g)).toHaveLength(5);
  expect(stdout).toMatch(/All held\. \d+\.\d s, no process and no file is left\.\n$/);
  expect(demoDirectories()).toEqual([]);
});

test("the demo tells programs the same, and leaves neither process nor file", async () => {
  await using scene = await Scene.open();
  const { code, stdout } = await scene.run(["demo", "--json"]);
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
  expect(pids.filter(isAlive)).toEqual([]);
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s in the middle ends the demo and all that it has started",
  async (signal) => {
    await using scene = await Scene.open();
    const demo = scene.start(["demo", "--json"]);
    await demo.said(/"state":"held"/);
    demo.kill(signal);
    const { code, stdout } = await demo.ended;
    expect(code).toBe(signal === "SIGINT" ? 130 : 143);
    expect(
      lines<Step>(stdout)
        .flatMap(({ pid }) => pid ?? [])
        .filter(isAlive),
    ).toEqual([]);
    expect(demoDirectories()).toEqual([]);
  },
);

test("a demo that fails says what went wrong and what to do", async () => {
  await using scene = await Scene.open();
  const { code, stdout, stderr } = await scene.run(["demo", "--pi", "no-such-pi.js"]);
  expect(code).toBe(1);
  expect(stdout).not.toContain("All held");
  expect(stderr).toMatch(/pi-rpcd: The demo failed after .*no-such-pi\.js.*--keep.*\(pi_not_found\)\n$/);
  expect(demoDirectories()).toEqual([]);
});
