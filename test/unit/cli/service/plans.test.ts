import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { candidates, kept } from "../../../../cli/service/environment.ts";
import { launchdPlan } from "../../../../cli/service/launchd.ts";
import type { ServiceFacts } from "../../../../cli/service/plan.ts";
import { systemdPlan } from "../../../../cli/service/systemd.ts";

const facts: ServiceFacts = {
  program: [process.execPath, "--flag", "/opt/pi rpcd/$main%.js"],
  stateDir: "/home/ada/.local/state/pi-rpcd",
  logFile: "/home/ada/.local/state/pi-rpcd/daemon.log",
  home: "/home/ada",
  configHome: "/home/ada/.config",
  environment: { PATH: "/bin:/usr/bin", ODD: `a "b" \\c $d <&>` },
  uid: 1_000,
};

describe("systemd", () => {
  const { files, enable } = systemdPlan(facts);
  const [environment, service, socket] = files.map(({ text }) => text);

  test("has a unit that is watched, and a socket that only its user may use", () => {
    expect(files.map(({ path }) => path.replace("/home/ada/.config/", ""))).toEqual([
      "pi-rpcd/service.env",
      "systemd/user/pi-rpcd.service",
      "systemd/user/pi-rpcd.socket",
    ]);
    for (const line of ["Type=notify", "NotifyAccess=all", "WatchdogSec=60", "KillMode=mixed", "TimeoutStopSec=30"]) {
      expect(service?.split("\n")).toContain(line);
    }
    expect(service).toContain(
      `ExecStart="${process.execPath}" "--flag" "/opt/pi rpcd/$$main%%.js" "start" "--foreground"`,
    );
    expect(socket).toContain("\nListenStream=/home/ada/.local/state/pi-rpcd/daemon.sock\nSocketMode=0600\n");
    expect(enable.at(-1)).toEqual(["systemctl", "--user", "enable", "--now", "pi-rpcd.socket"]);
  });

  test("has the variables in a file of their own, as a shell would read them too", () => {
    expect(files.map(({ isSecret }) => isSecret)).toEqual([true, false, false]);
    const read = execFileSync("sh", ["-c", `${environment}\nprintf %s "$ODD"`], { encoding: "utf8" });
    expect(read).toBe(facts.environment["ODD"]);
  });

  test("finds nothing wrong with the units, where it is there", () => {
    const found = spawnSync("systemd-analyze", ["--version"]).status === 0;
    const folder = mkdtempSync(join(tmpdir(), "units-"));
    try {
      const home = join(folder, "home");
      const program = [process.execPath, "--no-warnings", "/opt/pi rpcd/main.js"];
      const plan = systemdPlan({ ...facts, program, home, configHome: join(home, ".config") });
      for (const { path, text } of plan.files) {
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, text);
      }
      const units = plan.files.slice(1).map(({ path }) => path);
      const env = { ...process.env, HOME: home, XDG_RUNTIME_DIR: folder };
      const verified = spawnSync("systemd-analyze", ["--user", "verify", "--man=no", ...units], {
        encoding: "utf8",
        env,
      });
      const about = verified.stderr?.split("\n").filter((line) => line.includes("pi-rpcd")) ?? [];
      expect(about).toEqual([]);
      expect(found ? verified.status : 0).toBe(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test("launchd has an agent that starts at login, and again when it fails", () => {
  const [file] = launchdPlan(facts).files;
  expect(file?.path).toBe("/home/ada/Library/LaunchAgents/pi-rpcd.plist");
  expect(file?.isSecret).toBe(true);
  expect(file?.text).toContain('<key>ODD</key>\n    <string>a "b" \\c $d &lt;&amp;&gt;</string>');
  expect(file?.text).toContain("<string>--foreground</string>");
  expect(file?.text).toContain("<key>SuccessfulExit</key>\n    <false/>");
  const parse =
    "import plistlib,sys; p=plistlib.loads(sys.stdin.buffer.read()); print(p['EnvironmentVariables']['ODD'])";
  const python = spawnSync("python3", ["-c", parse], { input: file?.text ?? "", encoding: "utf8" });
  expect(python.error === undefined ? python.stdout.trim() : facts.environment["ODD"]).toBe(facts.environment["ODD"]);
});

describe("the variables that are kept", () => {
  const env = {
    PATH: "/bin",
    HTTPS_PROXY: "http://p",
    ANTHROPIC_API_KEY: "k",
    EDITOR: "vi",
    ODD: "a\nb",
    PI_OFFLINE: "1",
  };

  test("are the usual ones, and logins only by name", () => {
    expect(candidates(env)).toEqual({ usual: ["HTTPS_PROXY", "PATH", "PI_OFFLINE"], secrets: ["ANTHROPIC_API_KEY"] });
    expect(kept(env, ["PATH", "ANTHROPIC_API_KEY", "PATH"])).toEqual({ PATH: "/bin", ANTHROPIC_API_KEY: "k" });
  });

  test.each(["ODD", "ABSENT", "A B"])("cannot be %s", (name) => {
    expect(() => kept(env, [name])).toThrow(expect.objectContaining({ name: "UsageError" }));
  });
});
