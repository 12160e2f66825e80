import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { checkService } from "../../../../cli/doctor/service.ts";
import { checkStateDirectory, removedAtLogout } from "../../../../cli/doctor/state.ts";
import { launchdPlan } from "../../../../cli/service/launchd.ts";
import { systemdPlan } from "../../../../cli/service/systemd.ts";

function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), "doctor-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

test.each([
  ["systemd", systemdPlan, /^KillMode=process$/m, "KillMode=mixed"],
  ["launchd", launchdPlan, / *<key>AbandonProcessGroup<\/key>\n *<true\/>\n/, ""],
])("a service of %s that ends pi processes with a crashed daemon is named", (manager, planOf, line, former) => {
  const home = temporary();
  const stateDir = join(home, "state");
  const env = { HOME: home };
  expect(checkService(stateDir, env)).toBeUndefined();
  const logFile = join(stateDir, "daemon.log");
  const configHome = join(home, ".config");
  const { files } = planOf({ program: ["node"], stateDir, logFile, home, configHome, environment: {}, uid: 1 });
  for (const { path, text } of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  expect(checkService(stateDir, env)).toEqual({
    name: "service",
    state: "good",
    found: `${manager} starts the daemon`,
  });
  expect(checkService(join(home, "other"), env)).toBeUndefined();
  const changed = files.find(({ text }) => line.test(text))?.path ?? "";
  writeFileSync(changed, readFileSync(changed, "utf8").replace(line, former));
  expect(checkService(stateDir, env)).toMatchObject({ state: "odd", todo: "pi-rpcd service install" });
});

test("a state directory that a logout removes is named", () => {
  const runtime = temporary();
  expect(checkStateDirectory(runtime, { XDG_RUNTIME_DIR: dirname(runtime) })).toMatchObject({
    state: "odd",
    found: expect.stringContaining("when you log out"),
  });
  expect(checkStateDirectory(runtime, { XDG_RUNTIME_DIR: `${runtime}-other` })).toMatchObject({ state: "good" });
});

const mounts = [
  "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw",
  "40 22 0:35 / /var/tmp rw - tmpfs tmpfs rw",
  "41 22 8:1 /tmp/systemd-private-1234-pi.service-abc/tmp /tmp rw,relatime - ext4 /dev/sda1 rw",
  "42 22 8:1 /scratch.inst/ada /scratch rw,relatime - ext4 /dev/sda1 rw",
].join("\n");

test.each([
  ["/run/user/1000/pi-rpcd", undefined, "/run/user"],
  ["/xdg/pi-rpcd", "/xdg/", "/xdg"],
  ["/xdg", "/xdg", "/xdg"],
  ["/xdg-other/pi-rpcd", "/xdg", undefined],
  ["/home/ada/.local/state/pi-rpcd", "", undefined],
  ["/tmp/state", undefined, "/tmp"],
  ["/scratch/state", undefined, "/scratch"],
  ["/var/tmp/state", undefined, undefined],
])("%s with the runtime directory %s is removed with %s", (path, runtime, expected) => {
  expect(removedAtLogout(path, runtime, mounts)).toBe(expected);
});
