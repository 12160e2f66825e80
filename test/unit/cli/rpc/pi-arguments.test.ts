import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Asked, type PiArgumentsOptions, piArguments } from "../../../../cli/rpc/pi-arguments.ts";
import { type PiFlags, readPiFlags, type TestedPi, testedPis } from "../../../../cli/rpc/pi-flags.ts";
import { piOptions } from "../../../../protocol/session-options.ts";
import { createValidator } from "../../../../protocol/validation.ts";
import { piVersions } from "../../../../scripts/pi-versions.ts";
import { type PiProgram, planSpawn } from "../../../../server/pi/spawn-options.ts";

const validator = createValidator();
const files: Readonly<Record<string, string>> = {
  "/project/extension.ts": "",
  "/project/skill": "",
  "/project/template.md": "",
  "/home/me/own.ts": "",
  "/project/prompt.md": "\uFEFFYou are terse.\n",
  "/project/empty.md": "",
};

function ask(argv: readonly string[], options: Partial<PiArgumentsOptions> = {}): Asked {
  return piArguments(argv, {
    cwd: "/project",
    environment: { HOME: "/home/me" },
    files: {
      exists: (path) => path in files || path === "/project/folder",
      read: (path) => {
        const text = files[path];
        if (text === undefined) throw new Error("EISDIR");
        return text;
      },
    },
    validator,
    version: "1.5.2",
    ...options,
  });
}

/** The words of a line; `''` is an empty one. */
function words(line: string): string[] {
  return line === "" ? [] : line.split(" ").map((word) => (word === "''" ? "" : word));
}

// "--project unit" alone runs without the pi that is downloaded.
const presentPis = testedPis.filter((pi) => existsSync(piVersions[pi]));
const require = createRequire(import.meta.url);

const parserOf = (pi: TestedPi): string => join(dirname(piVersions[pi]), "..", "cli", "args.js");

const flagsOfPi = [
  ...["--help", "-h", "--version", "-v", "--mode", "--continue", "-c", "--resume", "-r", "--provider", "--model"],
  ...["--api-key", "--system-prompt", "--append-system-prompt", "--name", "-n", "--no-session", "--session"],
  ...["--session-id", "--fork", "--session-dir", "--models", "--no-tools", "-nt", "--no-builtin-tools", "-nbt"],
  ...["--tools", "-t", "--exclude-tools", "-xt", "--thinking", "--print", "-p", "--export", "--extension", "-e"],
  ...["--no-extensions", "-ne", "--skill", "--prompt-template", "--theme", "--use-theme", "--no-skills", "-ns"],
  ...["--no-prompt-templates", "-np", "--no-themes", "--no-context-files", "-nc", "--no-mcp", "--list-models"],
  ...["--tui-mode", "--verbose", "--approve", "-a", "--no-approve", "-na", "--offline"],
];
const otherWords = [
  ...["", "rpc", "json", "text", "bogus", "a", "a,b", " a , ,b", "+a", "-a", "+a,b", "+a*", "off", "max", "regular"],
  ...[
    "fullscreen",
    "@file",
    "@",
    "--",
    "-",
    "---",
    "---a",
    "-z",
    "--unknown",
    "--unknown=",
    "--unknown=a=b",
    "--=",
    "--=",
  ],
  ...["--mode=rpc", "--constructor", "constructor", "__proto__", "--__proto__", "hello world", "x/y.jsonl", "install"],
];

describe.each(presentPis)("the flags of pi %s", (pi) => {
  const { parseArgs } = require(parserOf(pi)) as { parseArgs(argv: readonly string[]): PiFlags };

  test("each flag is read as pi reads it, whatever follows it", () => {
    for (const flag of [...flagsOfPi, ...otherWords]) {
      for (const argv of [[flag], ...[...flagsOfPi, ...otherWords].map((next) => [flag, next])]) {
        expect(readPiFlags(argv, pi), argv.join(" ")).toEqual(parseArgs(argv));
      }
    }
  });

  test("random command lines are read as pi reads them", () => {
    const word = fc.oneof(fc.constantFrom(...flagsOfPi), fc.constantFrom(...otherWords), fc.string({ maxLength: 6 }));
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (argv) => {
        expect(readPiFlags(argv, pi)).toEqual(parseArgs(argv));
      }),
      { seed: 1, numRuns: 5_000 },
    );
  });

  test("flags of extensions reach it as they are, and nothing else comes of them", () => {
    const flags = { plan: true, depth: "-3", file: "@f", "no-value": "", text: "a=b --help", last: true } as const;
    const program = { kind: "executable", path: "/pi" } as PiProgram;
    const { args } = planSpawn({
      ...{ program, helper: "/helper.ts", helperConfig: "/config", childId: "child", sessionFile: "/s.jsonl" },
      ...{ cwd: "/", options: { flags }, env: {} },
    });
    expect(parseArgs(args)).toEqual({
      ...{ mode: "rpc", session: "/s.jsonl", extensions: ["/helper.ts"], messages: [], fileArgs: [], diagnostics: [] },
      unknownFlags: new Map<string, string | true>(Object.entries(flags)),
    });
  });

  test("these tests know every flag of pi", () => {
    const compared = [...readFileSync(parserOf(pi), "utf8").matchAll(/arg === "(-[^"]+)"/g)];
    const known = [...flagsOfPi, "--"];
    expect(compared.length).toBeGreaterThan(50);
    expect(compared.map(([, flag]) => flag).filter((flag) => !known.includes(flag ?? ""))).toEqual([]);
  });
});

test("no extension's flag can have the name of an option of pi", () => {
  expect([...piOptions].sort()).toEqual(flagsOfPi.map((flag) => flag.replace(/^--?/, "")).sort());
});

test.each<[string, Partial<Record<string, string>>?]>([
  [""],
  ["hello"],
  ["-p hello"],
  ["--mode json"],
  ["--mode text"],
  ["--mode rpc --mode text"],
  ["--mode=rpc"],
  ["-- --mode rpc"],
  ["--model --mode rpc"],
  ["--mode rpc --help"],
  ["-h --mode rpc"],
  ["--mode rpc --version"],
  ["--mode rpc -v"],
  ["--mode rpc --list-models"],
  ["--mode rpc --list-models sonnet"],
  ["--mode rpc --export a.jsonl"],
  ["--mode rpc --resume"],
  ["--mode rpc -r"],
  ["install npm:x --mode rpc"],
  ["remove x"],
  ["uninstall x"],
  ["update --mode rpc"],
  ["list"],
  ["config"],
  ["auth check"],
  ["mcp list"],
  ["--mode rpc", { PI_RPCD_CHILD: "c1" }],
  ["--mode rpc", { PI_RPCD_DIRECT: "1" }],
])("pi itself runs %j in the environment %j", (line, environment = {}) => {
  expect(ask(words(line), { environment })).toMatchObject({ kind: "pi", reason: expect.stringMatching(/^.+\.$/) });
});

test.each([
  ["--mode rpc"],
  ["--mode text --mode rpc"],
  ["--mode rpc hello list"],
  ["-p --mode rpc"],
  ["--mode rpc -- --help"],
  ["--mode rpc --export ''"],
  ["--mode rpc --system-prompt --help"],
])("the daemon serves %j", (line) => {
  expect(ask(words(line))).toMatchObject({ kind: "frontEnd", session: { kind: "new" } });
});

test.each<[string, object]>([
  ["", {}],
  ["--model a/b", { model: "a/b" }],
  ["--model a --model b:high", { model: "b:high" }],
  ["--model ''", {}],
  ["--provider p --model m", { provider: "p", model: "m" }],
  ["--provider '' --model m", { model: "m" }],
  ["--thinking high", { thinking: "high" }],
  ["--thinking high --thinking low", { thinking: "low" }],
  ["--name Refactoring", { name: "Refactoring" }],
  ["-n a -n b", { name: "b" }],
  ["--tools read,bash", { tools: ["read", "bash"] }],
  ["--tools read -t bash,,", { tools: ["bash"] }],
  ["--tools +codemode", { tools: ["+codemode"] }],
  ["--exclude-tools bash", { excludeTools: ["bash"] }],
  ["-xt mcp__*", { excludeTools: ["mcp__*"] }],
  ["--exclude-tools ''", {}],
  ["--no-tools", { noTools: "all" }],
  ["-nbt", { noTools: "builtin" }],
  ["-nbt -nt", { noTools: "all" }],
  ["--extension extension.ts -e ~/own.ts", { extensions: ["/project/extension.ts", "/home/me/own.ts"] }],
  ["-e file:///project/extension.ts", { extensions: ["/project/extension.ts"] }],
  ["-e ./folder/../extension.ts", { extensions: ["/project/extension.ts"] }],
  ["-e npm:@a/b@^1.0.0 -e builtin:mcp", { extensions: ["npm:@a/b@^1.0.0", "builtin:mcp"] }],
  ["-e git:github.com/a/b -e extension.ts", { extensions: ["git:github.com/a/b", "/project/extension.ts"] }],
  ["--skill skill", { skills: ["/project/skill"] }],
  ["--prompt-template /project/template.md", { promptTemplates: ["/project/template.md"] }],
  ["--no-extensions", { noExtensions: true }],
  [
    "-ne -ns -np -nc --no-themes",
    { noExtensions: true, noSkills: true, noPromptTemplates: true, noContextFiles: true },
  ],
  ["--system-prompt Short.", { systemPrompt: "Short." }],
  ["--system-prompt prompt.md", { systemPrompt: "You are terse.\n" }],
  ["--append-system-prompt One", { appendSystemPrompt: "One" }],
  [
    "--append-system-prompt One --append-system-prompt '' --append-system-prompt /project/prompt.md",
    { appendSystemPrompt: "One\n\nYou are terse.\n" },
  ],
  ["--append-system-prompt empty.md --append-system-prompt Two", { appendSystemPrompt: "\n\nTwo" }],
  ["--session-dir sessions", { sessionDir: "/project/sessions" }],
  ["--session-dir ~", { sessionDir: "/home/me" }],
  ["--session-dir ~/sessions", { sessionDir: "/home/me/sessions" }],
  ["--session-dir ~other", { sessionDir: "/project/~other" }],
  ["--approve", { approve: true }],
  ["-a -na", { approve: false }],
  ["--models a/x:high,b*", { models: ["a/x:high", "b*"] }],
  ["--no-mcp", { noMcp: true }],
  [
    "--plan --depth=-3 --who me --file=@f --empty=",
    { flags: { plan: true, depth: "-3", who: "me", file: "@f", empty: "" } },
  ],
  ["--plan a --plan b", { flags: { plan: "b" } }],
  ["--no-session", { ephemeral: true }],
  ["--offline", { env: { PI_OFFLINE: "1" } }],
  ["-- --offline", { env: { PI_OFFLINE: "1" } }],
  ["--theme t --use-theme dark --tui-mode regular --verbose hello", {}],
  ["--api-key ''", {}],
  ["-- hello --model a/b", {}],
])("%j is carried as %j", (line, options) => {
  for (const version of [...testedPis, undefined, "9.0.0"]) {
    const asked = { kind: "frontEnd", options, session: { kind: "new" }, warnings: [] };
    expect(ask(["--mode", "rpc", ...words(line)], { version })).toEqual(asked);
  }
});

test("flags may come before --mode rpc", () => {
  const options = { name: "a", noTools: "all" };
  expect(ask(words("-n a -nt --mode rpc"))).toMatchObject({ kind: "frontEnd", options });
});

test("a name is carried as pi stores it", () => {
  expect(ask(["--mode", "rpc", "--name", "  two\r\nlines "])).toHaveProperty("options", { name: "two lines" });
});

test("the environment names the session directory, unless a flag does", () => {
  const environment = { HOME: "/home/me", PI_CODING_AGENT_SESSION_DIR: "~/sessions" };
  const options = { environment };
  expect(ask(words("--mode rpc"), options)).toHaveProperty("options", { sessionDir: "/home/me/sessions" });
  expect(ask(words("--mode rpc --session-dir /a"), options)).toHaveProperty("options", { sessionDir: "/a" });
  expect(ask(words("--mode rpc --session-dir ''"), options)).toHaveProperty("options", {
    sessionDir: "/home/me/sessions",
  });
});

test.each([
  ["--api-key k", "--api-key is a secret, which the daemon does not take."],
  ["--no-mcp=x", "--no-mcp with a value has no counterpart in the daemon."],
  ["--tools -bash", "The daemon does not take this value of --tools: it must be a tool's name or pattern."],
  ["--tools ''", "The daemon does not take this value of --tools: it must NOT have fewer than 1 items."],
  ["--tools a/b", "The daemon does not take this value of --tools: it must be a tool's name or pattern."],
  ["--skill git:thing", "The daemon does not load git:thing for --skill: it is not a path."],
  ["-e missing.ts", "/project/missing.ts, which --extension names, does not exist."],
  ["--prompt-template ~/no.md", "/home/me/no.md, which --prompt-template names, does not exist."],
  ["--system-prompt folder", "/project/folder, which --system-prompt names, cannot be read."],
  [
    "--system-prompt ''",
    "The daemon does not take this value of --system-prompt: it must NOT have fewer than 1 characters.",
  ],
  [
    "--append-system-prompt empty.md",
    "The daemon does not take this value of --append-system-prompt: it must NOT have fewer than 1 characters.",
  ],
  ["--session-dir file://host/x", "file://host/x is not the URL of a file."],
  ["--provider p", "pi refuses --provider without --model."],
  ["--session-id a --name ''", "pi refuses an empty --name."],
])("pi itself runs --mode rpc %s", (line, reason) => {
  for (const version of ["1.5.2", undefined, "9.0.0"]) {
    expect(ask(words(`--mode rpc ${line}`), { version })).toMatchObject({ kind: "pi", reason });
  }
});

test("a value that the daemon's schema refuses makes pi run", () => {
  for (const [flag, value] of [
    ["--name", "-dash"],
    ["--name", "a\u0007b"],
    ["--name", "n".repeat(201)],
    ["--model", "two words"],
    ["--system-prompt", "p".repeat(262_145)],
    ["--session-dir", `/${"d".repeat(4_096)}`],
    ["--models", ""],
    ["--models", "two words"],
  ] as const) {
    expect(ask(["--mode", "rpc", flag, value]), flag).toMatchObject({
      kind: "pi",
      reason: expect.stringMatching(new RegExp(`^The daemon does not take this value of ${flag}: it must .+\\.$`)),
    });
  }
  for (const flag of ["--=v", "--mode=rpc", "--__proto__", "--a b", `--long=${"x".repeat(4_097)}`, "--help=x"]) {
    expect(ask(["--mode", "rpc", flag]), flag).toMatchObject({
      kind: "pi",
      reason: expect.stringMatching(/^The daemon does not take this value of an extension's flag: it .+\.$/),
    });
  }
  for (const source of ["github:user/repo", "npm:", "https://user:secret@host/a", " npm:x"])
    expect(ask(["--mode", "rpc", "-e", source]), source).toMatchObject({
      kind: "pi",
      reason: expect.stringMatching(/^The daemon does not take this value of --extension: it must be .+\.$/),
    });
  const many = Array.from({ length: 65 }, () => ["-e", "extension.ts"]).flat();
  expect(ask(["--mode", "rpc", ...many]).kind).toBe("pi");
});

const levels = "off, minimal, low, medium, high, xhigh, max";

// Measured: stderr of both versions.
const refusals: readonly [string, string][] = [
  ["@file", "Error: @file arguments are not supported in RPC mode\n"],
  ["-- @file", "Error: @file arguments are not supported in RPC mode\n"],
  ["-z", "Error: Unknown option: -z\n"],
  ["-e", "Error: Unknown option: -e\n"],
  ["--thinking x -z", `Warning: Invalid thinking level "x". Valid values: ${levels}\nError: Unknown option: -z\n`],
  [
    "--thinking x @f",
    `Warning: Invalid thinking level "x". Valid values: ${levels}\nError: @file arguments are not supported in RPC mode\n`,
  ],
  ["--mode bogus", 'Error: Invalid mode "bogus". Valid values: text, json, rpc\n'],
  ["--mode", "Error: --mode requires text, json, or rpc\n"],
  ["--name", "Error: --name requires a value\n"],
  ["--name ''", "Error: --name requires a non-empty value\n"],
  ["--use-theme", "Error: --use-theme requires a theme name\n"],
  ["--tui-mode x", 'Error: Invalid TUI mode "x". Valid values: regular, fullscreen\n'],
  ["--tui-mode", "Error: --tui-mode requires regular or fullscreen\n"],
  [
    "--fork x --session y --continue --no-session",
    "Error: --fork cannot be combined with --session, --continue, --no-session\n",
  ],
  ["--session-id x --session y -c", "Error: --session-id cannot be combined with --session, --continue\n"],
  ...["-bad-", "''", "a/b"].map((id): [string, string] => [
    `--session-id ${id}`,
    "Error: Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with an alphanumeric character\n",
  ]),
];

test.each(refusals)("--mode rpc %s is refused as pi refuses it", (line, stderr) => {
  for (const version of testedPis) {
    expect(ask(words(`--mode rpc ${line}`), { version })).toEqual({ kind: "refused", stderr, exitCode: 1 });
  }
});

test.each(refusals)("an untested pi itself decides about --mode rpc %s", (line, stderr) => {
  for (const version of [undefined, "9.0.0"]) {
    const reason = `The tested versions of pi refuse this: ${stderr.trim().replaceAll("\n", " ")}`;
    expect(ask(words(`--mode rpc ${line}`), { version })).toMatchObject({ kind: "pi", reason });
  }
});

test.each([
  ["--tools +a,b", "--tools: tool names cannot be mixed with +name or -name entries"],
  ["-t +a*", "-t: +name and -name entries take exact tool names, not patterns: +a*"],
])("only pi 1.5.2 refuses --mode rpc %s", (line, message) => {
  const argv = words(`--mode rpc ${line}`);
  expect(ask(argv)).toEqual({ kind: "refused", stderr: `Error: ${message}\n`, exitCode: 1 });
  expect(ask(argv, { version: "0.87.1" }).kind).toBe("frontEnd");
  expect(ask(argv, { version: undefined }).kind).toBe("pi");
});

test("pi 0.87.1 ignores a provider without a model", () => {
  expect(ask(words("--mode rpc --provider p"), { version: "0.87.1" })).toMatchObject({ kind: "frontEnd", options: {} });
});

test("pi 0.87.1 takes the word after --no-mcp for its value", () => {
  expect(ask(words("--mode rpc --no-mcp @f"), { version: "0.87.1" }).kind).toBe("refused");
  expect(ask(words("--no-mcp x --mode rpc"), { version: "0.87.1" })).toMatchObject({
    kind: "pi",
    reason: "--no-mcp with a value has no counterpart in the daemon.",
  });
});

test("an invalid thinking level is a warning in pi's words", () => {
  expect(ask(words("--mode rpc --thinking low --thinking x"))).toEqual({
    kind: "frontEnd",
    options: { thinking: "low" },
    session: { kind: "new" },
    warnings: [`Warning: Invalid thinking level "x". Valid values: ${levels}`],
  });
});

test.each<[string, object]>([
  ["", { kind: "new" }],
  ["--session 01ab", { kind: "session", reference: "01ab" }],
  ["--session a.jsonl", { kind: "session", reference: "/project/a.jsonl" }],
  ["--session ../a/b", { kind: "session", reference: "/a/b" }],
  ["--session ~/b.jsonl", { kind: "session", reference: "/home/me/b.jsonl" }],
  ["--session file:///a%20b.jsonl", { kind: "session", reference: "/a b.jsonl" }],
  ["--session a --session b", { kind: "session", reference: "b" }],
  ["--session ''", { kind: "new" }],
  ["--session a --continue", { kind: "session", reference: "a" }],
  ["--session a --no-session", { kind: "new" }],
  ["--continue --no-session", { kind: "new" }],
  ["--session-id a --no-session", { kind: "new", sessionId: "a" }],
  ["-c", { kind: "continue" }],
  ["--session-id a-b_c.d", { kind: "sessionId", id: "a-b_c.d" }],
  ["--fork 01ab", { kind: "fork", reference: "01ab" }],
  ["--fork ./a.jsonl", { kind: "fork", reference: "/project/a.jsonl" }],
  ["--fork 01ab --session-id new", { kind: "fork", reference: "01ab", sessionId: "new" }],
  ["--fork '' --continue", { kind: "continue" }],
])("%j names the session %j", (line, session) => {
  expect(ask(words(`--mode rpc ${line}`.trim()))).toMatchObject({ kind: "frontEnd", session });
  // pi writes to the same one if it runs itself.
  expect(ask(words(`--mode json ${line}`.trim()))).toMatchObject({ kind: "pi", session });
});

test("a command line for pi says in which directory its session is", () => {
  expect(ask(words("-c --session-dir sessions"))).toEqual({
    kind: "pi",
    reason: "The command line has no --mode rpc.",
    session: { kind: "continue" },
    sessionDir: "/project/sessions",
  });
});

test("tested versions that both leave a command line to the daemon read it equally", () => {
  const word = fc.oneof(fc.constantFrom(...flagsOfPi), fc.constantFrom(...otherWords));
  let served = 0;
  fc.assert(
    fc.property(fc.array(word, { maxLength: 6 }), (rest) => {
      const argv = ["--mode", "rpc", ...rest];
      const [first, ...others] = testedPis.map((version) => ask(argv, { version }));
      if ([first, ...others].some((asked) => asked?.kind !== "frontEnd")) return;
      served += 1;
      for (const other of others) expect(other).toEqual(first);
      expect(ask(argv, { version: undefined })).toEqual(first);
    }),
    { seed: 1, numRuns: 5_000 },
  );
  expect(served).toBeGreaterThan(100);
});
