import { expect, test } from "vitest";
import type { PiProgram } from "../../../server/pi/spawn-options.ts";
import { type PiOptions, planSpawn } from "../../../server/pi/spawn-options.ts";

function plan(options: PiOptions, env: NodeJS.ProcessEnv = {}, startEnv: Readonly<Record<string, string>> = {}) {
  return planSpawn({
    program: { kind: "executable", path: "/pi" } as PiProgram,
    helper: "/helper.ts",
    helperConfig: "/run/config",
    childId: "child",
    sessionFile: "/s.jsonl",
    cwd: "/",
    options,
    promptFiles: { systemPrompt: "/run/system.md", appendSystemPrompt: "/run/append.md" },
    env,
    startEnv,
  });
}

test("every option has its flag, followed by each value, and the helper is the last extension", () => {
  const { args } = plan({
    model: "p/m",
    models: ["a/*", "b"],
    thinking: "low",
    name: "a name",
    tools: ["read", "bash"],
    excludeTools: ["write"],
    noTools: "builtin",
    extensions: ["/a.ts", "/b"],
    skills: ["/skill"],
    promptTemplates: ["/template.md"],
    noExtensions: true,
    noMcp: true,
    flags: { plan: true, depth: "-3" },
    noSkills: true,
    noPromptTemplates: true,
    noContextFiles: true,
    sessionDir: "/sessions",
    approve: true,
  });
  const line = args.join(" ");
  for (const part of [
    "--session /s.jsonl",
    "--model p/m",
    "--models a/*,b",
    "--thinking low",
    "--name a name",
    "--tools read,bash",
    "--exclude-tools write",
    "--no-builtin-tools",
    "--extension /a.ts --extension /b",
    "--skill /skill",
    "--prompt-template /template.md",
    "--no-extensions",
    "--no-mcp",
    "--plan --depth=-3 --extension /helper.ts",
    "--no-skills",
    "--no-prompt-templates",
    "--no-context-files",
    "--system-prompt /run/system.md",
    "--append-system-prompt /run/append.md",
    "--session-dir /sessions",
    "--approve",
  ]) {
    expect(line).toContain(part);
  }
  expect(args.slice(-2)).toEqual(["--extension", "/helper.ts"]);
});

test("unset options are not on the command line, and options that are turned off are", () => {
  expect(plan({}).args).toEqual([
    ...["--mode", "rpc", "--session", "/s.jsonl"],
    ...["--system-prompt", "/run/system.md", "--append-system-prompt", "/run/append.md"],
    ...["--extension", "/helper.ts"],
  ]);
  expect(plan({ approve: false }).args).toContain("--no-approve");
  expect(plan({ noTools: "all" }).args).toContain("--no-tools");
});

test.each(["-x", "--approve", "--", "a\0b"])("a value %j never becomes an option", (value) => {
  for (const options of [{ model: value }, { name: value }, { extensions: [value] }, { sessionDir: value }]) {
    expect(() => plan(options)).toThrow(TypeError);
  }
});

test.each(["a\nb", "a b", "a;b", "$(a)", "--x".slice(2)])("a value %j stays one argument", (value) => {
  const { args } = plan({ name: value });
  expect(args[args.indexOf("--name") + 1]).toBe(value);
});

test("a session's variables are added, and never replace the daemon's own markers", () => {
  const { env } = plan({ env: { MINE: "1", PI_RPCD_CHILD: "forged" } }, { NODE_OPTIONS: "--x", npm_a: "b", KEY: "k" });
  expect(env).toMatchObject({ MINE: "1", KEY: "k" });
  expect([env["NODE_OPTIONS"], env["npm_a"]]).toEqual(["--disable-sigusr1", undefined]);
  expect(Object.values(env)).toContain("child");
});

test("variables for pi's start replace those of daemon and session, and the helper restores them", () => {
  const startEnv = { TMPDIR: "/private", NODE_COMPILE_CACHE: "/private/node", MINE: "start" };
  const { env, startEnvironment } = plan({ env: { MINE: "session" } }, { TMPDIR: "/tmp", OTHER: "1" }, startEnv);
  expect(env).toMatchObject({ ...startEnv, OTHER: "1" });
  expect(startEnvironment).toEqual({
    TMPDIR: { value: "/private", before: "/tmp" },
    NODE_COMPILE_CACHE: { value: "/private/node" },
    MINE: { value: "start", before: "session" },
    NODE_OPTIONS: { value: "--disable-sigusr1" },
  });
});

test("no pi opens an inspector at SIGUSR1: our Node has a flag for it, another one gets it by a variable", () => {
  const program = { kind: "script", path: "/pi/cli.js" } as PiProgram;
  const { args } = planSpawn({
    program,
    helper: "/h",
    helperConfig: "/c",
    childId: "i",
    cwd: "/",
    options: {},
    env: {},
  });
  expect(args.slice(0, args.indexOf("/pi/cli.js"))).toContain("--disable-sigusr1");
  const { startEnvironment } = plan({ env: { NODE_OPTIONS: "--no-deprecation" } });
  expect(startEnvironment).toEqual({
    NODE_OPTIONS: { value: "--no-deprecation --disable-sigusr1", before: "--no-deprecation" },
  });
});
