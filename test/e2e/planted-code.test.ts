import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { answer, call } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { piUnderTest } from "../helpers/pi-versions.ts";
import { startStage } from "../helpers/stage.ts";

/** Of the sources: jiti keeps compiled code of TypeScript alone. */
const helper = join(import.meta.dirname, "..", "..", "extension", "index.ts");

const extensionText = `import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
export default (pi: any) => {
  pi.registerCommand("where", { description: "", handler: async (file: string) => writeFileSync(file, tmpdir()) });
  pi.registerCommand("again", { description: "", handler: async (_text: string, ctx: any) => await ctx.reload() });
};
`;

/** A pi as in a terminal: it leaves compiled code in its directory for temporary files. */
async function compileInto(temporary: string, root: string, extension: string): Promise<void> {
  const args = ["--mode", "rpc", "--no-session", "-e", helper, "-e", extension];
  const pi = spawn(process.execPath, [piUnderTest().cli, ...args], {
    cwd: root,
    env: { ...process.env, PI_CODING_AGENT_DIR: join(root, "agent"), PI_OFFLINE: "1", TMPDIR: temporary },
    stdio: ["pipe", "ignore", "ignore"],
  });
  const exited = once(pi, "exit");
  pi.stdin.end();
  await exited;
}

/**
 * Creates jiti's cache before pi does, with a payload in each file that jiti would execute. As root, the tests run
 * another user's commands for it; their working directory needs no path through the tests' private directories.
 */
function plant(temporary: string, compiled: string, payload: string): readonly string[] {
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  const run = (command: string, input = ""): void => {
    execFileSync("/bin/sh", ["-c", command], { cwd: temporary, input, ...user });
  };
  run("mkdir jiti");
  const names = readdirSync(join(compiled, "jiti"));
  for (const name of names) {
    run(`cat > "jiti/${name}"`, `${payload}\n${readFileSync(join(compiled, "jiti", name), "utf8")}`);
  }
  return names;
}

test("a pi executes nothing that others can write, also after a reload; its tools have the user's environment", async () => {
  const root = mkdtempSync(join(tmpdir(), "planted-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const [temporary, compiled] = [join(root, "tmp"), join(root, "compiled")];
  const [extension, ran, where] = [join(root, "extension.ts"), join(root, "ran"), join(root, "where")];
  for (const directory of [temporary, compiled]) mkdirSync(directory);
  chmodSync(temporary, 0o1777);
  writeFileSync(extension, extensionText);
  await compileInto(compiled, root, extension);
  const payload = `process.getBuiltinModule("node:fs").appendFileSync(${JSON.stringify(ran)}, "x");`;
  const planted = plant(temporary, compiled, payload);
  expect(planted.filter((name) => name.includes("extension")).length).toBeGreaterThan(1);

  const shown = 'echo "$TMPDIR|$NODE_COMPILE_CACHE|$JITI_RESPECT_TMPDIR_ENV|$PI_RPCD_HELPER_CONFIG"';
  await using stage = await startStage({
    helper,
    provider: { script: [answer(call("bash", { command: shown })), answer("done")] },
    env: () => ({ TMPDIR: temporary, NODE_COMPILE_CACHE: "/given" }),
  });
  const session = await stage.client.createSession({
    cwd: stage.cwd,
    model: "scripted/model-1",
    extensions: [extension],
  });
  expect(existsSync(ran)).toBe(false);
  await session.promptAndWait("go");
  expect(stage.provider.requests.at(-1)?.countText(`${temporary}|/given||`, { roles: ["tool"] })).toBe(1);
  expect((await session.bash(shown)).output.trim()).toBe(`${temporary}|/given||`);
  await session.prompt(`/where ${where}`);
  expect(readFileSync(where, "utf8")).toBe(temporary);

  // Every process of this user can read the initial environment.
  const { output } = await session.bash("cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'");
  expect(output).not.toContain(stage.stateDir);

  await session.prompt("/again");
  expect((await session.get()).state).toBe("idle");
  expect(existsSync(ran)).toBe(false);
  expect(readdirSync(temporary).filter((name) => !/^pi-bash-/.test(name))).toEqual(["jiti"]);
  expect(readdirSync(join(temporary, "jiti")).sort()).toEqual([...planted].sort());
});

test("a pi that runs on another Node opens no inspector at SIGUSR1, also while it starts", async () => {
  const root = mkdtempSync(join(tmpdir(), "wrapped-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const pi = join(root, "pi");
  writeFileSync(pi, `#!/bin/sh\nexec '${process.execPath}' '${piUnderTest().cli}' "$@"\n`, { mode: 0o700 });
  // The session's extensions are loaded before the helper, which handles the signal.
  const early = join(root, "early.ts");
  writeFileSync(early, 'process.kill(process.pid, "SIGUSR1");\nexport default () => {};\n');
  await using stage = await startStage({ pi });
  const session = await stage.client.createSession({
    cwd: stage.cwd,
    model: "scripted/model-1",
    extensions: [early],
  });
  const { pid } = await session.get();
  process.kill(pid as number, "SIGUSR1");
  expect((await session.bash('echo "<$NODE_OPTIONS>"')).output.trim()).toBe("<>");
  await fallAsleep(stage.client, session.id);
  expect((await session.get()).exit).toMatchObject({ code: 0, stderrTail: "" });
});
