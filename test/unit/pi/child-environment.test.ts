import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import { ChildEnvironments } from "../../../server/pi/child-environment.ts";

let root = "";
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "environment-")));
  mkdirSync(join(root, ".pi", "agent"), { recursive: true });
  symlinkSync(join(root, ".pi", "agent"), join(root, "link"));
});
afterAll(() => rmSync(root, { recursive: true }));

const environments = (more: NodeJS.ProcessEnv = {}) => new ChildEnvironments({ HOME: root, ...more });

test("equal are environments that differ only in their window, and in what children never inherit", () => {
  const own = environments();
  const fingerprint = (more: Record<string, string>) => own.ofClient({ HOME: root, ...more }).fingerprint;
  const window = { PWD: "/", OLDPWD: "/", SHLVL: "2", _: "/pi", TERM: "x", TERM_PROGRAM: "y", COLORTERM: "t" };
  const login = { SSH_CONNECTION: "a", SSH_CLIENT: "b", SSH_TTY: "c", XDG_SESSION_ID: "1", INVOCATION_ID: "i" };
  const more = { COLUMNS: "8", LINES: "2", WINDOWID: "7", TMUX: "t", TMUX_PANE: "%1", STY: "s", JOURNAL_STREAM: "j" };
  const never = { NODE_OPTIONS: "-r x", INIT_CWD: "/", npm_config_x: "1", PI_RPCD_STATE_DIR: "/s" };
  expect(fingerprint({ ...window, ...login, ...more, ...never })).toBe(fingerprint({}));
  expect(fingerprint({})).toBe(own.own.fingerprint);
  for (const [name, value] of Object.entries({ SSH_AUTH_SOCK: "/s", PATH: "/bin", XTERM: "x", MY_TERM: "y" }))
    expect(fingerprint({ [name]: value })).not.toBe(fingerprint({}));
  expect(fingerprint({ A: "1", B: "2" })).toBe(fingerprint({ B: "2", A: "1" }));
  expect(fingerprint({ A: "1B=2" })).not.toBe(fingerprint({ A: "1", B: "2" }));
  // The secret is another one in each life of a daemon.
  expect(environments().own.fingerprint).not.toBe(own.own.fingerprint);
});

test("the variables are the client's, without what children never inherit", () => {
  const given = { HOME: root, TERM: "x", KEY: "v", NODE_OPTIONS: "-r x", PI_CODING_AGENT_SESSION_DIR: "/theirs" };
  expect(environments().ofClient(given).variables).toEqual({ HOME: root, TERM: "x", KEY: "v" });
  const own = environments({ PI_CODING_AGENT_SESSION_DIR: "/ours" }).ofClient(given);
  expect(own.variables["PI_CODING_AGENT_SESSION_DIR"]).toBe("/ours");
});

test("no text of an environment has its variables", () => {
  const environment = environments().ofClient({ HOME: root, SECRET_NAME: "secret value" });
  const lines: string[] = [];
  pino({ level: "trace" }, { write: (line) => void lines.push(line) }).info({ environment, nested: [{ environment }] });
  const texts = [JSON.stringify(environment), inspect(environment, { depth: 9, showHidden: true }), ...lines];
  expect(texts.join()).not.toMatch(/SECRET_NAME|secret value/);
});

test.each([
  [{ PI_CODING_AGENT_DIR: "" }, true],
  [{ PI_CODING_AGENT_DIR: "~/.pi/agent" }, true],
  [{ HOME: "/", PI_CODING_AGENT_DIR: "link" }, true],
  [{ HOME: "/" }, false],
  [{ HOME: "" }, false],
  [{ HOME: "relative" }, false],
  [{ PI_CODING_AGENT_DIR: "~" }, false],
  [{ PI_CODING_AGENT_DIR: ".pi/agent" }, false],
  [{ HOME: "/", PI_CODING_AGENT_DIR: "~/.pi/agent" }, false],
  [{ PI_CODING_AGENT_DIR: "/nowhere" }, false],
] as const)("%j is accepted where it leads to the daemon's own directory", (more, isAccepted) => {
  const given: Record<string, string> = { HOME: root, KEY: "secret", ...more };
  // In the root, so that a relative path cannot be right by chance.
  if (given["PI_CODING_AGENT_DIR"] === "link") given["PI_CODING_AGENT_DIR"] = join(root, "link");
  const result = (): string => environments().ofClient(given).from;
  if (isAccepted) expect(result()).toBe("client");
  else expect(result).toThrow(expect.objectContaining({ kind: "forbidden" }));
});

test("an environment without HOME leads to the home directory of the user", () => {
  const { HOME: _home, ...rest } = { HOME: root, KEY: "x" };
  expect(() => environments().ofClient(rest)).toThrow(expect.objectContaining({ kind: "forbidden" }));
});

test("what no environment can have is refused, and no value is in the error", () => {
  const long = "secret".repeat(200_000);
  const many = Object.fromEntries(Array.from({ length: 4_097 }, (_, i) => [`V${i}`, "secret"]));
  const validator = createValidator();
  for (const bad of [{ "": "secret" }, { "A=B": "secret" }, { A: "secret\0" }, { "A\0": "secret" }, { A: 7 }, many]) {
    const findings = validator.params("session/create", { cwd: "/", environment: bad });
    expect(findings).not.toEqual([]);
    expect(JSON.stringify(findings)).not.toContain("secret");
  }
  // The schema's patterns have no total, and do not cover names with line ends.
  for (const bad of [{ A: long }, { "A\nB": "secret\0" }]) {
    let refused: unknown;
    try {
      environments().ofClient({ HOME: root, ...bad });
    } catch (error) {
      refused = error;
    }
    expect(refused).toMatchObject({ kind: "invalid_params" });
    expect(inspect(refused, { depth: 9 })).not.toContain("secret");
  }
});
