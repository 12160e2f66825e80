import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Report } from "../../../cli/doctor/finding.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { type Ended, lines, Scene } from "../cli/scene.ts";

const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

function report({ code, stdout }: Ended): Report & { readonly code: number | null; readonly bad: readonly string[] } {
  const [document] = lines<Report>(stdout);
  if (document === undefined) throw new Error("doctor has printed nothing");
  return { ...document, code, bad: document.findings.filter(({ state }) => state === "bad").map(({ name }) => name) };
}

/** Every bad finding contains advice. */
function expectAdvice({ findings }: Report): void {
  for (const { state, todo } of findings) if (state === "bad") expect(todo).toMatch(/\w{2,}/);
}

function writeDaemonFile(scene: Scene): void {
  const socketPath = join(scene.stateDir, "daemon.sock");
  const file = { pid: 2 ** 22 - 3, version: "0.1.0", protocol: 1, url: "http://127.0.0.1:9", socketPath };
  writeFileSync(join(scene.stateDir, "daemon.json"), JSON.stringify({ ...file, token: "t".repeat(43) }), {
    mode: 0o600,
  });
}

describe("doctor", () => {
  test("finds no problem in a healthy installation, before the first start and with a running daemon, and leaves nothing", async () => {
    await using scene = await Scene.open();
    const before = report(await scene.run(["doctor", "--json"]));
    expect(before.findings.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "node good",
      "state directory good",
      "token good",
      "daemon good",
      "socket good",
      "configuration good",
      "pi good",
      "model good",
      "extension good",
      "round trip good",
    ]);
    expect(before).toMatchObject({ ok: true, code: 0 });
    expect(before.findings.find(({ name }) => name === "pi")?.found).toContain(piUnderTest().version);
    expect(before.findings.at(-1)?.found).toMatch(/delivered by (headers|start|content|message)/);
    expect(existsSync(scene.stateDir)).toBe(false);
    expect(scene.provider.requests).toHaveLength(0);

    await scene.json(["start"]);
    const beside = await scene.run(["doctor", "--quick"]);
    expect(beside.code).toBe(0);
    expect(beside.stdout).toMatch(/^✔ daemon +pi-rpcd \S+ runs \(process \d+\) with pi /m);
    expect(beside.stdout).toMatch(/^✔ socket +\/.*daemon\.sock, private$/m);
    expect(beside.stdout).toMatch(/^✔ live restore +/m);
    expect(beside.stdout).toMatch(/^- round trip +--quick\nNo problems found\.\n$/m);
    expect(beside.stderr).toBe("");
  });

  test("says what to do about a broken set-up", async () => {
    await using scene = await Scene.open();
    const quick = async (env: NodeJS.ProcessEnv = {}) => {
      const found = report(await scene.run(["doctor", "--quick", "--json"], { env }));
      expectAdvice(found);
      expect([found.ok, found.code]).toEqual([false, 1]);
      return found;
    };
    mkdirSync(scene.stateDir, { mode: 0o700 });

    // Permissions that let other users in.
    writeFileSync(join(scene.stateDir, "token"), `${"t".repeat(43)}\n`, { mode: 0o644 });
    chmodSync(scene.stateDir, 0o755);
    const open = await quick();
    expect(open.bad).toEqual(["state directory", "token"]);
    expect(open.findings[1]?.todo).toBe(`chmod 700 ${scene.stateDir}`);
    chmodSync(scene.stateDir, 0o700);
    chmodSync(join(scene.stateDir, "token"), 0o600);

    // Files of a killed daemon.
    writeDaemonFile(scene);
    expect(await quick()).toMatchObject({ bad: ["daemon"] });
    writeFileSync(join(scene.stateDir, "daemon.json"), "{", { mode: 0o600 });
    expect(await quick()).toMatchObject({ bad: ["daemon"] });

    // Another program's socket.
    writeFileSync(join(scene.stateDir, "daemon.json"), "", { mode: 0o600 });
    const foreign = createServer().listen(join(scene.stateDir, "daemon.sock"));
    expect((await quick()).bad).toEqual(["daemon", "socket"]);
    await new Promise((resolve) => foreign.close(resolve));
    chmodSync(join(scene.stateDir, "daemon.json"), 0o600);
    writeDaemonFile(scene);

    // No pi, and one that is too old.
    expect((await quick({ PI_RPCD_PI: "/nowhere/pi" })).bad).toEqual(["daemon", "pi"]);
    const old = await quick({ PI_RPCD_PI: fakePi, FAKE_PI_VERSION: "0.40.0" });
    expect(old.bad).toEqual(["daemon", "pi"]);
    expect(old.findings.find(({ name }) => name === "pi")?.todo).toContain("Update it");

    // A configuration with a mistake, and one that names a pi that is gone.
    const file = join(scene.root, "config.json");
    const configured = async (text: string, env: NodeJS.ProcessEnv = {}) => {
      writeFileSync(file, text);
      const found = report(await scene.run(["doctor", "--quick", "--json", "--config", file], { env }));
      expectAdvice(found);
      return found;
    };
    const wrong = await configured('{\n  "prot": 1\n}');
    expect(wrong.bad).toEqual(["daemon", "configuration"]);
    expect(wrong.findings.find(({ name }) => name === "configuration")?.found).toMatch(/line 2: \/prot/);
    // An environment variable takes precedence over the file.
    expect((await configured('{ "pi": "gone/cli.js" }')).bad).toEqual(["daemon"]);
    const gone = await configured('{ "pi": "gone/cli.js" }', { PI_RPCD_PI: "" });
    expect(gone.bad).toEqual(["daemon", "pi"]);
    expect(gone.findings.find(({ name }) => name === "pi")?.found).toContain(join(scene.root, "gone", "cli.js"));
    const { findings } = await configured(JSON.stringify({ pi: piUnderTest().cli }), { PI_RPCD_PI: "" });
    const found = findings.find(({ name }) => name === "pi")?.found;
    expect(found).toContain(`${piUnderTest().version} (from the configuration) `);
  });

  test("names an extension that does not load, and a pi that does not start, with the original error text", async () => {
    await using scene = await Scene.open();
    const env = { PI_RPCD_PI: fakePi, FAKE_PI: "exit-at-start" };
    const dead = report(await scene.run(["doctor", "--json"], { env }));
    expectAdvice(dead);
    expect(dead).toMatchObject({ ok: false, code: 1, bad: ["model", "extension"] });
    expect(dead.findings.find(({ name }) => name === "extension")?.found).toContain("fake pi has no wish to start");
    expect(dead.findings.at(-1)).toMatchObject({ name: "round trip", state: "skipped" });

    const other = await scene.run(["doctor"], { env: { ...env, FAKE_PI: "other-link" } });
    expect(other.code).toBe(1);
    expect(other.stdout).toMatch(/^✘ extension +.*\n +→ .*install it again/m);
    expect(other.stdout).toMatch(/\n2 problems found\.\n$/);
    expect(readdirSync(scene.root)).not.toContain("state");
  });
});
