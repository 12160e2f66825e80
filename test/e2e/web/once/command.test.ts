import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { expect, test } from "vitest";
import { startTokenStage, type TokenStage } from "../../../helpers/token-stage.ts";
import { exchange, openPageSocket } from "../../../helpers/web-page.ts";
import { Running } from "../../cli/scene.ts";

/** A home and a desktop, whose program for files keeps a copy of the file that it gets. */
function desktop(stage: TokenStage) {
  const home = mkdtempSync(join(tmpdir(), "desktop-"));
  for (const name of ["xdg-open", "open"]) {
    writeFileSync(
      join(home, name),
      `#!/bin/sh\nprintf '%s' "$1" > ${home}/path\ncp "$1" ${home}/next\nmv ${home}/next ${home}/page.html\n`,
    );
    chmodSync(join(home, name), 0o755);
  }
  const path = [home, dirname(process.execPath), "/usr/bin", "/bin"].join(delimiter);
  const files = join(home, ".cache", "pi-rpcd", "web");
  return {
    start: (args: readonly string[], env: NodeJS.ProcessEnv = { DISPLAY: ":0" }) =>
      new Running(["web", "--state-dir", stage.stateDir, ...args], {
        env: { HOME: home, PATH: path, TZ: "UTC", ...env },
      }),
    /** What the browser got: the page, where it was, and the address in it. */
    opened: async () => {
      await expect.poll(() => existsSync(join(home, "page.html"))).toBe(true);
      const page = readFileSync(join(home, "page.html"), "utf8");
      const [, port = "", code = ""] = /url=http:\/\/127\.0\.0\.1:(\d+)\/#([\w-]+)"/.exec(page) ?? [];
      return { path: readFileSync(join(home, "path"), "utf8"), page, port: Number(port), code };
    },
    /** The files that the commands have left. */
    left: () => (existsSync(files) ? readdirSync(files) : []),
    home,
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** The command lines of all processes. */
function commandLines(): string {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const read = (pid: string): string => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1");
    } catch {
      return "";
    }
  };
  return pids.map(read).join("\n");
}

test("web opens the browser by a private file, says so when it has signed in, and leaves no file and no secret", async () => {
  await using stage = await startTokenStage();
  using desk = desktop(stage);
  const command = desk.start([]);
  const { path, page, port, code } = await desk.opened();
  expect(dirname(path)).toBe(join(desk.home, ".cache", "pi-rpcd", "web"));
  expect([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(page).toContain('<meta name="referrer" content="no-referrer">');
  if (process.platform === "linux") expect(commandLines()).not.toContain(code);
  const { token } = (await exchange({ port, code })).body;
  // On a slow machine it has printed the address before.
  const stdout = expect.stringMatching(`The web console is open at http://127.0.0.1:${port}/\n$`);
  expect(await command.ended).toMatchObject({ code: 0, stdout });
  expect(desk.left()).toEqual([]);
  await using socket = await openPageSocket(port, token);
  const closing = await desk.start(["--close"]).ended;
  expect(closing).toMatchObject({ code: 0, stdout: "The web console is closed; all browsers are signed out.\n" });
  expect((await socket.closed).code).toBe(4401);
  expect((await desk.start(["--close"]).ended).stdout).toBe("The web console is not open.\n");
  for (const secret of [code, token]) expect(stage.logged.join("")).not.toContain(secret);
});

test("web prints the address when no browser uses it, and an interrupt ends the wait like any command", async () => {
  await using stage = await startTokenStage();
  using desk = desktop(stage);
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    const command = desk.start([]);
    await command.said(/ssh -L .*\n/);
    expect(desk.left()).toHaveLength(1);
    command.kill(signal);
    const { stdout, stderr, ...ended } = await command.ended;
    expect(ended).toEqual({ code, signal: null });
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#[\w-]{43}\n$/);
    const port = /:(\d+)\//.exec(stdout)?.[1];
    expect(stderr).toMatch(
      new RegExp(
        `^Open this .* works once, until .*:\nFrom .*: ssh -L ${port}:127\\.0\\.0\\.1:${port} \\S+\n.*Interrupted by ${signal}\\.\n$`,
      ),
    );
    expect(desk.left()).toEqual([]);
  }
});

test("web prints the address at once with --print, with --json, without a desktop, and without a program that opens files", async () => {
  await using stage = await startTokenStage();
  using desk = desktop(stage);
  const codes = new Set<string>();
  for (const [args, env] of [
    [["--print", "--read-only"], { DISPLAY: ":0" }],
    [["--json", "--payload"], { DISPLAY: ":0" }],
    [["--bash"], {}],
    [[], { DISPLAY: ":0", PATH: "/nowhere" }],
  ] as const) {
    const { code, stdout, stderr } = await desk.start(args, env).ended;
    expect([args, code]).toEqual([args, 0]);
    if (args[0] === "--json")
      expect(JSON.parse(stdout)).toEqual({
        url: expect.any(String),
        port: expect.any(Number),
        address: expect.any(String),
        expiresAt: expect.any(Number),
      });
    else expect(stderr).toContain("ssh -L");
    const [, port = "", secret = ""] = /127\.0\.0\.1:(\d+)\/#([\w-]{43})/.exec(stdout) ?? [];
    codes.add(secret);
    expect((await exchange({ port: Number(port), code: secret })).status).toBe(200);
  }
  expect([codes.size, existsSync(join(desk.home, "page.html")), desk.left()]).toEqual([4, false, []]);
  const { tokens } = await stage.call(stage.main, "token/list");
  expect(tokens.slice(1).map(({ capabilities }: { capabilities: string[] }) => capabilities.join())).toEqual([
    "observe",
    "observe,prompt,payload",
    "observe,prompt,bash",
    "observe,prompt",
  ]);
});

test("web refuses options that contradict each other, warns of a fixed port, and starts nothing to close", async () => {
  await using stage = await startTokenStage();
  using desk = desktop(stage);
  for (const args of [
    ["--close", "--print"],
    ["--read-only", "--bash"],
    ["--web-port", "x"],
  ])
    expect([args, (await desk.start(args).ended).code]).toEqual([args, 2]);
  const { port } = await stage.openWeb();
  const fixed = await desk.start(["--print", "--web-port", String(port)]).ended;
  expect(fixed.stderr).toContain("service workers");
  expect(fixed.stdout).toContain(`:${port}/#`);
  await stage.daemon.stop();
  const closing = await desk.start(["--close"]).ended;
  expect([closing.code, closing.stdout]).toEqual([0, expect.stringContaining("There is nothing to close.")]);
  expect((await desk.start(["--print", "--no-start"]).ended).code).toBe(3);
});
