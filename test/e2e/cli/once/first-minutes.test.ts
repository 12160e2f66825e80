import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { connect } from "../../../../client/index.ts";
import { errorName, lines, Scene } from "../scene.ts";

const fakePi = join(import.meta.dirname, "..", "..", "..", "fixtures", "fake-pi.mjs");
const client = join(import.meta.dirname, "..", "..", "..", "..", "client", "index.ts");

interface Findings {
  readonly findings: readonly { readonly name: string; readonly state: string; readonly found: string }[];
}

describe("commands that read", () => {
  const commands = ["ls", "deliveries", "dialogs", "token", "token list"];

  test.each(commands)("%s starts a daemon, unless an option forbids it", async (line) => {
    const words = line.split(" ");
    await using scene = await Scene.open();
    const env = { PI_RPCD_PI: fakePi };
    const refused = await scene.run([...words, "--no-start", "--json"], { env });
    expect([refused.code, errorName(refused.stderr)]).toEqual([3, "daemon_not_running"]);
    const { code, stderr } = await scene.run(words, { env });
    expect([code, stderr]).toEqual([0, expect.stringContaining("no daemon was running; started one")]);
  });

  test("token checks its arguments before it starts a daemon", async () => {
    await using scene = await Scene.open();
    expect((await scene.run(["token", "create"])).code).toBe(2);
    expect(scene.daemonFile).toBeUndefined();
  });
});

test("a profile that was added while the daemon runs is refused with the file's path, and known after a restart", async () => {
  await using scene = await Scene.open();
  const home = join(scene.root, "home");
  const file = join(home, "pi-rpcd", "config.json");
  const env = { PI_RPCD_PI: fakePi, XDG_CONFIG_HOME: home };
  await scene.json(["start"], { env });
  mkdirSync(join(home, "pi-rpcd"), { recursive: true });
  writeFileSync(file, '{ "profiles": { "review": { "labels": { "kind": "review" } } } }');
  const refused = await scene.run(["new", "--profile", "review"], { env });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`added to ${file} is known after: pi-rpcd start --restart`);
  await scene.json(["start", "--restart"], { env });
  expect(await scene.json(["new", "--profile", "review"], { env })).toMatchObject({ labels: { kind: "review" } });
});

describe("a service manager that does not answer", () => {
  test("leaves no file and no directory of the service", async () => {
    await using scene = await Scene.open();
    const programs = join(scene.root, "programs");
    mkdirSync(programs);
    const noBus = "Failed to connect to bus: No medium found";
    writeFileSync(join(programs, "systemctl"), `#!/bin/sh\necho '${noBus}' >&2\nexit 1\n`);
    chmodSync(join(programs, "systemctl"), 0o755);
    const home = join(scene.root, "home");
    const env = {
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      PATH: `${programs}${delimiter}${process.env["PATH"]}`,
    };
    const install = ["service", "install", "--platform", "systemd", "--keep", "PATH"];
    const failed = await scene.run(install, { env });
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain(noBus);
    expect(failed.stderr).toContain("The service was not installed; its files are as before.");
    expect(failed.stderr).toContain("loginctl enable-linger");
    expect(existsSync(home)).toBe(false);

    // An update that fails keeps the installed service.
    await scene.run([...install, "--no-enable"], { env });
    const unit = join(home, "config", "systemd", "user", "pi-rpcd.service");
    const folder = join(home, "config", "pi-rpcd");
    writeFileSync(unit, "installed before");
    expect((await scene.run(install, { env })).code).toBe(1);
    expect(readdirSync(folder)).toEqual(["service.env"]);
    const { stdout } = await scene.run(["service", "status", "--platform", "systemd"], { env });
    expect(stdout).toContain("installed for systemd");
  });
});

describe("a state directory that cannot be created", () => {
  test.runIf(process.platform === "linux")("below /proc is named at once by a command and by doctor", async () => {
    await using scene = await Scene.open();
    const stateDir = "/proc/pi-rpcd/state";
    for (const command of ["start", "new", "ls"]) {
      const { code, stderr } = await scene.run([command, "--state-dir", stateDir, "--json"]);
      expect([command, code, errorName(stderr)]).toEqual([command, 1, "state_dir_unusable"]);
    }
    const { code, stdout } = await scene.run(["doctor", "--quick", "--json", "--state-dir", stateDir]);
    const [found] = lines<Findings>(stdout);
    expect(code).toBe(1);
    expect(found?.findings).toContainEqual(
      expect.objectContaining({
        name: "state directory",
        state: "bad",
        found: expect.stringContaining("/proc accepts no"),
      }),
    );
  });

  test("below a file is noticed by doctor, which leaves nothing where it can be created", async () => {
    await using scene = await Scene.open();
    writeFileSync(join(scene.root, "file"), "");
    const before = readdirSync(scene.root);
    const stateOf = async (stateDir: string) => {
      const { stdout } = await scene.run(["doctor", "--quick", "--json", "--state-dir", stateDir]);
      return lines<Findings>(stdout)[0]?.findings.find(({ name }) => name === "state directory")?.state;
    };
    expect(await stateOf(join(scene.root, "file", "state"))).toBe("bad");
    expect(await stateOf(join(scene.root, "a", "state"))).toBe("good");
    expect(readdirSync(scene.root)).toEqual(before);
  });
});

test("an empty HOME is refused by name by every command, and nothing is created in the working directory", async () => {
  await using scene = await Scene.open();
  const before = readdirSync(scene.cwd);
  for (const command of [["ls"], ["new"], ["doctor", "--quick"], ["start", "--foreground"]]) {
    const env = { HOME: "", PI_RPCD_STATE_DIR: "" };
    const { code, stderr } = await scene.run([...command, "--json"], { env });
    expect([command, code, errorName(stderr)]).toEqual([command, 1, "home_empty"]);
    expect(stderr).toContain("variable HOME is empty");
  }
  expect((await scene.run(["--version"], { env: { HOME: "" } })).code).toBe(0);
  expect(readdirSync(scene.cwd)).toEqual(before);
});

describe("connect() of the client library", () => {
  test("starts a daemon that continues after the program, if asked to", async () => {
    await using scene = await Scene.open();
    const program = join(scene.root, "program.mjs");
    const call =
      "const client = await connect({ start: true });\nconsole.log((await client.info()).pid);\nawait client.close();";
    writeFileSync(program, `import { connect } from ${JSON.stringify(client)};\n${call}\n`);
    const env = { ...scene.env, PI_RPCD_PI: fakePi };
    const run = async () => Number((await promisify(execFile)(process.execPath, [program], { env })).stdout);
    const pid = await run();
    expect(await scene.json(["status"])).toMatchObject({ running: true, pid });
    expect(await run()).toBe(pid);
  });

  test("says how to start one, and names why one could not be started", async () => {
    await using scene = await Scene.open();
    const { stateDir } = scene;
    const message = expect.stringContaining("`pi-rpcd start`, or let the program do it: connect({ start: true }).");
    await expect(connect({ stateDir })).rejects.toMatchObject({ kind: "daemon_not_running", message });
    writeFileSync(join(scene.root, "file"), "");
    await expect(connect({ stateDir: join(scene.root, "file"), start: true })).rejects.toMatchObject({
      kind: "daemon_start_failed",
      reason: "state_dir_unusable",
    });
    await expect(connect({ url: "http://127.0.0.1:9", start: true })).rejects.toThrow(TypeError);
  });
});
