import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { marked, signal } from "../../../server/pi/processes.ts";
import { main } from "../../helpers/programs.ts";
import { type Running, Scene } from "../cli/scene.ts";

const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

/** A program that records its calls. */
function recorder(scene: Scene, name: string): { readonly folder: string; readonly calls: () => readonly string[] } {
  const folder = join(scene.root, "programs");
  const log = join(scene.root, `${name}.log`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), `#!/bin/sh\necho "$*" >>'${log}'\n`);
  chmodSync(join(folder, name), 0o755);
  return { folder, calls: () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []) };
}

test("a service is installed with the named variables, shown, and removed without a trace", async () => {
  await using scene = await Scene.open();
  const systemctl = recorder(scene, "systemctl");
  const home = join(scene.root, "home");
  const path = `${systemctl.folder}${delimiter}${process.env["PATH"]}`;
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, "config"), PATH: path, MY_API_KEY: "very-secret" };
  const run = (...args: readonly string[]) => scene.run(["service", ...args, "--platform", "systemd"], { env });

  const dry = await run("install", "--dry-run", "--keep", "PATH,MY_API_KEY");
  expect(dry.code).toBe(0);
  expect(dry.stdout).toContain('MY_API_KEY="…"');
  expect(dry.stdout).not.toContain("very-secret");
  expect(existsSync(home)).toBe(false);
  expect((await run("status")).code).toBe(1);
  expect((await run("install", "--keep", "NOT_THERE")).code).toBe(2);

  expect((await run("install", "--keep", "PATH,MY_API_KEY")).stdout).toContain("pi-rpcd.socket");
  const environment = join(home, "config", "pi-rpcd", "service.env");
  expect(readFileSync(environment, "utf8")).toContain('MY_API_KEY="very-secret"');
  expect(statSync(environment).mode & 0o777).toBe(0o600);
  const unit = join(home, "config", "systemd", "user", "pi-rpcd.service");
  expect(readFileSync(unit, "utf8")).toContain(scene.stateDir);
  expect(systemctl.calls()).toEqual(["--user daemon-reload", "--user enable --now pi-rpcd.socket"]);
  expect((await run("status")).code).toBe(0);

  expect((await run("uninstall")).stdout.match(/^removed /gm)).toHaveLength(3);
  expect(existsSync(unit) || existsSync(environment)).toBe(false);
  expect(systemctl.calls().at(-2)).toContain("disable --now");
  expect((await run("uninstall")).stdout).toBe("No service is installed.\n");
});

/** The processes with the markers of the daemon's children, as they would be in its control group. */
async function childrenOf(scene: Scene): Promise<readonly number[]> {
  const lines = readFileSync(join(scene.stateDir, "children.jsonl"), "utf8").trim().split("\n");
  const ids = lines.map((line) => (JSON.parse(line) as { readonly id: string }).id);
  return (await marked(ids)).map(({ pid }) => pid);
}

/** Ends what systemd ends when a service's main process has been killed. systemd itself is not needed. */
async function crash(scene: Scene, unit: string, daemon: Running): Promise<void> {
  const others = await childrenOf(scene);
  daemon.kill("SIGKILL");
  await daemon.ended;
  if (!unit.includes("\nKillMode=process\n")) for (const pid of others) signal(pid, "SIGKILL");
}

test("a crash of the service leaves the daemon's children alive, an older unit does not, and uninstall ends them", async () => {
  await using scene = await Scene.open();
  const systemctl = recorder(scene, "systemctl");
  const home = join(scene.root, "home");
  const path = `${systemctl.folder}${delimiter}${process.env["PATH"]}`;
  const env = { HOME: home, XDG_CONFIG_HOME: join(home, "config"), PATH: path };
  const run = (...args: readonly string[]) => scene.run(["service", ...args, "--platform", "systemd"], { env });
  expect((await run("install", "--keep", "PATH")).code).toBe(0);
  const unit = readFileSync(join(home, "config", "systemd", "user", "pi-rpcd.service"), "utf8");
  // A pi, and a process of it that does not end with it.
  const child = { PI_RPCD_PI: fakePi, FAKE_PI: "leave-a-process", PI_RPCD_WARM_CHILDREN: "0" };
  for (const text of [unit.replace("KillMode=process", "KillMode=mixed"), unit]) {
    const daemon = scene.start(["start", "--foreground", "--json"], { env: child });
    await daemon.said(/"started"/);
    await scene.json(["new"], { env: child });
    await crash(scene, text, daemon);
    const left = text === unit ? 2 : 0;
    await expect.poll(async () => (await childrenOf(scene)).length).toBe(left);
  }
  const { code, stderr } = await run("uninstall");
  expect([code, stderr]).toEqual([0, expect.stringContaining("Ended 2 processes of pi.")]);
  expect(await childrenOf(scene)).toEqual([]);
});

test("a daemon uses the socket that systemd holds, reports that it is ready and alive, and leaves the socket", async () => {
  await using scene = await Scene.open();
  const notify = recorder(scene, "systemd-notify");
  mkdirSync(scene.stateDir, { mode: 0o700 });
  const path = join(scene.stateDir, "daemon.sock");
  const socket = createServer();
  await once(socket.listen(path), "listening");
  chmodSync(path, 0o600);
  // Node removes the socket path that it bound when it closes; systemd leaves it.
  const kept = join(scene.root, "kept.sock");
  linkSync(path, kept);
  const { fd } = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle;
  const env = {
    ...scene.env,
    PATH: `${notify.folder}${delimiter}${process.env["PATH"]}`,
    PI_RPCD_PI: fakePi,
    NOTIFY_SOCKET: join(scene.root, "notify"),
    WATCHDOG_USEC: "400000",
  };
  const line = `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" --disable-warning=ExperimentalWarning "$1" start --foreground`;
  const child = spawn("sh", ["-c", line, process.execPath, main], { env, stdio: ["ignore", "ignore", "inherit", fd] });
  const ended = once(child, "exit");
  await new Promise((resolve) => socket.close(resolve));
  renameSync(kept, path);
  try {
    await expect.poll(() => notify.calls()).toContain("WATCHDOG=1");
    expect(notify.calls()[0]).toBe(`--ready --pid=${child.pid}`);
    const { ino } = statSync(path);
    expect(await scene.json(["status"])).toMatchObject({ running: true, pid: child.pid, socketPath: path });
    expect(await scene.json(["ls"])).toEqual({ sessions: [] });
    child.kill("SIGTERM");
    await ended;
    expect(notify.calls().at(-1)).toBe("STOPPING=1");
    expect(statSync(path).ino).toBe(ino);
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
});
