import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { candidates, kept } from "../../../../cli/service/environment.ts";
import { launchdPlan } from "../../../../cli/service/launchd.ts";
import type { ServiceFacts } from "../../../../cli/service/plan.ts";
import { systemdPlan } from "../../../../cli/service/systemd.ts";
import { plistOf } from "./plist.ts";

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

  test("has a unit with a watchdog, and a socket that only its user may use", () => {
    expect(files.map(({ path }) => path.replace("/home/ada/.config/", ""))).toEqual([
      "pi-rpcd/service.env",
      "systemd/user/pi-rpcd.service",
      "systemd/user/pi-rpcd.socket",
    ]);
    for (const line of [
      "Type=notify",
      "NotifyAccess=all",
      "WatchdogSec=60",
      "KillMode=process",
      "OOMPolicy=continue",
      "Restart=on-failure",
      "TimeoutStopSec=30",
    ]) {
      expect(service?.split("\n")).toContain(line);
    }
    expect(service).toContain(
      `ExecStart="${process.execPath}" "--flag" "/opt/pi rpcd/$$main%%.js" "start" "--foreground"`,
    );
    expect(socket).toContain("\nListenStream=/home/ada/.local/state/pi-rpcd/daemon.sock\nSocketMode=0600\n");
    expect(enable.at(-1)).toEqual(["systemctl", "--user", "enable", "--now", "pi-rpcd.socket"]);
  });

  test("has the variables in a separate file, quoted so that a shell could read it too", () => {
    expect(files.map(({ isSecret }) => isSecret)).toEqual([true, false, false]);
    const read = execFileSync("sh", ["-c", `${environment}\nprintf %s "$ODD"`], { encoding: "utf8" });
    expect(read).toBe(facts.environment["ODD"]);
  });

  test("accepts the units, if it is installed, for any name of the program", () => {
    const found = spawnSync("systemd-analyze", ["--version"]).status === 0;
    const folder = mkdtempSync(join(tmpdir(), "units-"));
    try {
      for (const name of ["plain", "100% at home", "a $HOME of one's own"]) {
        const home = join(folder, name);
        const node = join(home, "a node");
        mkdirSync(home);
        writeFileSync(node, "#!/bin/sh\n", { mode: 0o755 });
        const program = [node, "--no-warnings", `/opt/"pi" 'rpcd' %h \\x/main.js`];
        const stateDir = join(home, "state %t");
        const plan = systemdPlan({
          ...{ ...facts, program, home, stateDir },
          ...{ logFile: join(stateDir, "daemon.log"), configHome: join(home, ".config") },
        });
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
        expect([name, about]).toEqual([name, []]);
        expect([name, found ? verified.status : 0]).toEqual([name, 0]);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.each([
    ["/opt/a b/node", []],
    [`/opt/it's/node`, ["/usr/bin/env"]],
    ['/opt/"a"/node', ["/usr/bin/env"]],
    ["/opt/a\\b/node", ["/usr/bin/env"]],
    ["/opt/$a/node", ["/usr/bin/env"]],
  ])("has a command line that is read as what was meant: %s", (node, before) => {
    const odd = [node, `two "words" \\n $HOME %h 'x' ;`, "100%"];
    const stateDir = `/home/a b/"state" %t $x \\`;
    const plan = systemdPlan({ ...facts, program: odd, stateDir, logFile: join(stateDir, "daemon.log") });
    const [, unit = "", listening = ""] = plan.files.map(({ text }) => text);
    const line = unit.split("\n").find((each) => each.startsWith("ExecStart=")) ?? "";
    const own = ["start", "--foreground", "--state-dir", stateDir, "--log-file", join(stateDir, "daemon.log")];
    expect(wordsOf(line.replace("ExecStart=", ""))).toEqual([...before, ...odd, ...own]);
    const listens = /^ListenStream=(.*)$/m.exec(listening)?.[1] ?? "";
    expect(listens.replaceAll("%%", "%")).toBe(join(stateDir, "daemon.sock"));
  });
});

/** The words of a command line as systemd.service(5) defines them, all of them in double quotes. */
function wordsOf(line: string): readonly string[] {
  const words = Array.from(line.matchAll(/"((?:[^"\\]|\\.)*)"(?: |$)/g), ([, word = ""]) => word);
  expect(words.map((word) => `"${word}"`).join(" ")).toBe(line);
  return words.map((word) => {
    const unescaped = word.replaceAll(/\\(["\\])/g, "$1");
    expect(word.replaceAll(/\\["\\]/g, "")).not.toContain("\\");
    expect(unescaped.replaceAll("%%", "").replaceAll("$$", "")).not.toMatch(/[%$]/);
    return unescaped.replaceAll("%%", "%").replaceAll("$$", () => "$");
  });
}

describe("launchd", () => {
  test("has an agent that starts at login, and again after a failure", () => {
    const { files, enable, disable, forget, status } = launchdPlan(facts);
    const [file] = files;
    expect(files).toHaveLength(1);
    expect(file?.path).toBe("/home/ada/Library/LaunchAgents/pi-rpcd.plist");
    expect(file?.isSecret).toBe(true);
    expect(plistOf(file?.text ?? "")).toEqual({
      Label: "pi-rpcd",
      ProgramArguments: [
        ...facts.program,
        ...["start", "--foreground", "--state-dir", facts.stateDir, "--log-file", facts.logFile],
      ],
      EnvironmentVariables: facts.environment,
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      AbandonProcessGroup: true,
      ExitTimeOut: 30,
      Umask: 0o077,
    });
    expect([enable, disable, forget, status]).toEqual([
      [["launchctl", "bootstrap", "gui/1000", file?.path]],
      [["launchctl", "bootout", "gui/1000/pi-rpcd"]],
      [],
      ["launchctl", "print", "gui/1000/pi-rpcd"],
    ]);
  });

  test("keeps each text in its list unchanged, whatever it contains", () => {
    const odd = [`/a "b" 'c' & <d> ]]> &amp; %h $x \\/node`, "--é=世界"];
    const [file] = launchdPlan({ ...facts, program: odd, environment: { A: odd[0] ?? "" } }).files;
    const { ProgramArguments, EnvironmentVariables } = plistOf(file?.text ?? "") as {
      readonly ProgramArguments: readonly string[];
      readonly EnvironmentVariables: object;
    };
    expect(ProgramArguments.slice(0, 2)).toEqual(odd);
    expect(EnvironmentVariables).toEqual({ A: odd[0] });
  });
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

  test("are the usual ones, and credentials only by name", () => {
    expect(candidates(env)).toEqual({ usual: ["HTTPS_PROXY", "PATH", "PI_OFFLINE"], secrets: ["ANTHROPIC_API_KEY"] });
    expect(kept(env, ["PATH", "ANTHROPIC_API_KEY", "PATH"])).toEqual({ PATH: "/bin", ANTHROPIC_API_KEY: "k" });
  });

  test.each(["ODD", "ABSENT", "A B"])("cannot be %s", (name) => {
    expect(() => kept(env, [name])).toThrow(expect.objectContaining({ name: "UsageError" }));
  });
});
