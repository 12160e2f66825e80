import { expect, test } from "vitest";
import { piOptions, sessionOptions } from "../../../protocol/session-options.ts";
import { createValidator } from "../../../protocol/validation.ts";
import type { PiProgram } from "../../../server/pi/spawn-options.ts";
import { type PiOptions, planSpawn } from "../../../server/pi/spawn-options.ts";

/** Texts that would be an option, end an argument, or begin another line when printed. */
const hostile = ["-", "--", "-x", "--approve", "-e=/evil.ts", "--session", "a\0b", "\0", "a\nb", "\n--approve"];
const validator = createValidator();

/** Every string of session/create, from its schema: alone, or as an item. */
const strings = Object.entries(sessionOptions).flatMap(([name, schema]) => {
  const { type, items, ...rest } = schema as { readonly type?: string; readonly items?: { readonly type?: string } };
  if (type === "array") return [{ name, of: (value: string): unknown => [value], item: items?.type }];
  const isChoice = "enum" in rest || "anyOf" in rest;
  return type === "string" || isChoice ? [{ name, of: (value: string): unknown => value, item: "string" }] : [];
});

/** They reach pi in files of the daemon, whatever they begin with. */
const inFiles = ["systemPrompt", "appendSystemPrompt"];

function argumentsOf(options: PiOptions): readonly string[] {
  return planSpawn({
    program: { kind: "script", path: "/pi/cli.js" } as PiProgram,
    helper: "/helper.ts",
    helperConfig: "/run/config",
    childId: "child",
    sessionFile: "/s.jsonl",
    cwd: "/",
    options,
    promptFiles: { systemPrompt: "/run/system.md", appendSystemPrompt: "/run/append.md" },
    env: {},
  }).args;
}

test("the table has exactly the options that take a text", () => {
  const others = Object.keys(sessionOptions).filter((name) => !strings.some((row) => row.name === name));
  expect(others.sort()).toEqual(
    [
      "approve",
      "env",
      "ephemeral",
      "flags",
      "labels",
      "noContextFiles",
      "noExtensions",
      "noMcp",
      "noPromptTemplates",
      "noSkills",
      "optimisation",
      "pruning",
    ].sort(),
  );
  expect(strings.map(({ item }) => item)).toEqual(strings.map(() => "string"));
});

test.each(strings)("no hostile text is accepted for $name, or it stays one argument in a file", ({ name, of }) => {
  for (const value of hostile) {
    const findings = validator.params("session/create", { cwd: "/", [name]: of(value) });
    if (inFiles.includes(name)) expect(argumentsOf({ [name]: of(value) })).toEqual(argumentsOf({}));
    else expect([value, findings.length]).toEqual([value, 1]);
  }
});

test.each([
  ...["npm:thing", "npm:@scope/thing@1.2.3", "npm:thing@^1.0.0", "npm:thing@latest", "builtin:mcp", "/a b/-x"],
  ...["git:github.com/user/repo", "git:git@github.com:user/repo@v1", "git:user/repo", "https://github.com/user/repo"],
  ...[
    "ssh://git@host.example:22/user/repo.git#main",
    "git:https://host.example/user/repo@0123abc",
    "git:git://h.example/a/b",
  ],
])("an extension may be %s", (source) => {
  expect(validator.params("session/create", { cwd: "/", extensions: [source] })).toEqual([]);
  expect(argumentsOf({ extensions: [source] })).toContain(source);
});

test.each([
  ...[
    "npm:",
    "npm:-g",
    "npm:--registry=x",
    "npm:/etc",
    "npm:../x",
    "npm:file:x",
    "npm:x@file:/etc",
    "npm:x y",
    "npm:@/x",
  ],
  ...[
    "npm:x@-g",
    "npm:x@npm:y",
    "builtin:",
    "builtin:../x",
    "builtin:a/b",
    "builtin:-x",
    "github:user/repo",
    "file:///etc",
  ],
  ...["git:-x/a", "git:/etc/passwd", "git:../x/y", "git:host.example/a/../b", "git:host.example/a@--upload-pack=x"],
  ...[
    "git:ext::sh",
    "git:file:///etc/x",
    "https://host/-x",
    "https://user:secret@host/a/b",
    "https:host/a",
    "http:///etc",
  ],
  ...[
    "https://host/a/../b",
    "git:host.example/a@b/../c",
    "https://host/a b",
    "https://host/%2e%2e/x",
    "ssh://-oProxyCommand=x/a",
    "git:git@-x:a/b",
    "git:host.example/a#-x",
  ],
  ...["NPM:x", " npm:x", "npm:x\n", "relative.ts", "~/x.ts", `npm:${"x".repeat(300)}`, `git:host/${"x".repeat(600)}`],
])("an extension may not be %j", (source) => {
  expect(validator.params("session/create", { cwd: "/", extensions: [source] })).toHaveLength(1);
});

test("no flag of an extension has the name of an option, ends its word, or reaches pi outside of it", () => {
  const names = [...hostile, ...piOptions, "", "a=b", "a b", "__proto__", "@file"];
  for (const name of names) {
    const flags = Object.fromEntries([[name, "v"]]);
    expect([name, validator.params("session/create", { cwd: "/", flags })]).toEqual([name, [expect.anything()]]);
    expect(() => argumentsOf({ flags })).toThrow(TypeError);
  }
  expect(validator.params("session/create", { cwd: "/", flags: { ["x".repeat(129)]: true } })).toHaveLength(1);
  for (const value of ["a\0b", "v".repeat(4_097), false, 1, null, ["a"]]) {
    expect(validator.params("session/create", { cwd: "/", flags: { plan: value } })).not.toEqual([]);
  }
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`flag${i}`, true]));
  expect(validator.params("session/create", { cwd: "/", flags: many })).toHaveLength(1);
  expect(() => argumentsOf({ flags: { plan: "a\0b" } })).toThrow(TypeError);
  for (const value of hostile.filter((text) => !text.includes("\0")))
    expect(argumentsOf({ flags: { plan: value } })).toContain(`--plan=${value}`);
});

test.each(strings.filter(({ name }) => !["provider", "thinking", "noTools", "customUi", ...inFiles].includes(name)))(
  "if the schema of $name ever accepted one, nothing would be started",
  ({ name, of }) => {
    for (const value of hostile.filter((text) => text.startsWith("-") || text.includes("\0"))) {
      expect(() => argumentsOf({ [name]: of(value) })).toThrow(TypeError);
    }
  },
);
