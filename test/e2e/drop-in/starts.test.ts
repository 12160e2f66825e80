import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { dropInMain } from "./program.ts";
import { Front, type Scene, scene, started } from "./stage.ts";

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the drop-in to its end, without anything on its stdin. */
async function ended(args: readonly string[], { world, env }: Pick<Scene, "world" | "env">): Promise<Ended> {
  const child = spawn(process.execPath, [dropInMain, ...args], {
    cwd: world.cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].on("data", (chunk: Buffer) => {
      texts[name] += chunk.toString();
    });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...texts };
}

/** The environment with a directory first on PATH, and no pi named. */
function withFirst(directory: string, { PI_RPCD_PI: _, ...env }: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, PATH: `${directory}${delimiter}${env["PATH"]}` };
}

test("what is not pi's RPC mode is done by pi itself, also where the drop-in stands for pi on PATH", async () => {
  const on = await scene([]);
  const { version } = piUnderTest();
  expect(await ended(["--version"], on)).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  const bin = join(on.world.root, "bin");
  mkdirSync(bin);
  symlinkSync(dropInMain, join(bin, "pi"));
  const { code, stdout, stderr } = await ended(["--version"], { ...on, env: withFirst(bin, on.env) });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("a wrapper that leads back to the drop-in is an error after a few rounds", async () => {
  const on = await scene([]);
  const bin = join(on.world.root, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "pi"), `#!/bin/sh\nexec "${process.execPath}" "${dropInMain}" "$@"\n`);
  chmodSync(join(bin, "pi"), 0o755);
  const { code, stdout, stderr } = await ended(["--version"], { ...on, env: withFirst(bin, on.env) });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("PI_RPCD_PI");
});

test("pi itself never opens a session that the daemon has, however the command line names it", async () => {
  const on = await scene(["Hello."]);
  const session = await on.client.createSession({ cwd: on.world.cwd });
  await session.promptAndWait("Hi.");
  const { file } = await session.get();
  const { stateDir } = on.world;
  const refused = {
    code: 1,
    stdout: "",
    stderr: expect.stringContaining(`in use by the pi-rpcd with the state directory ${stateDir}`),
  };
  for (const named of [
    ["--continue"],
    ["--session", file],
    ["--session", session.id.slice(0, 13)],
    ["--session-id", session.id],
  ]) {
    expect(await ended([...named, "-p", "Hi."], on)).toEqual(refused);
    expect(await ended(["--mode", "rpc", "--models", "a,b", ...named], on)).toEqual(refused);
  }
});

test("many starts at once with one id share one session", async () => {
  const on = await scene([]);
  const args = [dropInMain, "--mode", "rpc", "--session-id", "shared-by-all"];
  const fronts = Array.from({ length: 6 }, () => new Front(started(args, on)));
  const states = await Promise.all(fronts.map((front) => front.call({ id: 1, type: "get_state" })));
  const ids = states.map(({ data }) => (data as { sessionId: string }).sessionId);
  expect(new Set(ids)).toEqual(new Set(["shared-by-all"]));
  expect(await on.client.listSessions()).toHaveLength(1);
});

test("a stored session is opened with the options that it can be opened with, and pi itself gets the others", async () => {
  const on = await scene(["Hello."]);
  const session = await on.client.createSession({ cwd: on.world.cwd });
  await session.promptAndWait("Hi.");
  const { file } = await session.get();
  await session.close();
  const named = ["--mode", "rpc", "--session", file];
  const front = new Front(started([dropInMain, ...named, "--approve", "--name", "again"], on));
  await front.call({ id: 1, type: "get_state" });
  const [info] = await on.client.listSessions();
  expect(info).toMatchObject({ sessionId: session.id, projectTrust: "approved", name: "again" });
  front.end();
  await front.exited;
  await on.client.session(session.id).close();
  const pi = new Front(started([dropInMain, ...named, "--tools", "read"], on));
  expect(await pi.call({ id: 1, type: "get_last_assistant_text" })).toMatchObject({ data: { text: "Hello." } });
  expect(await on.client.listSessions()).toEqual([]);
  pi.end();
  expect(await pi.exited).toEqual([0, null]);
});
