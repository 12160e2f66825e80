import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, test } from "vitest";
import { answer, hold } from "../../../provider/reply.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { dropInMain } from "../../helpers/programs.ts";
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
    expect(await ended(["--mode", "rpc", "--api-key", "k", ...named], on)).toEqual(refused);
  }
});

test("without MCP the daemon has the session of a pi that has the option, and an older pi refuses in its own words", async () => {
  const on = await scene([]);
  const args = ["--mode", "rpc", "--no-mcp"];
  const { noMcp } = (await on.client.info()).pi.capabilities;
  if (noMcp === true) {
    await new Front(started([dropInMain, ...args], on)).call({ id: 1, type: "get_state" });
    expect(await on.client.listSessions()).toHaveLength(1);
  } else expect(await ended(args, on)).toEqual({ code: 1, stdout: "", stderr: "Error: Unknown option: --no-mcp\n" });
});

test("many starts at once with one id share one session", async () => {
  const on = await scene([]);
  const args = [dropInMain, "--mode", "rpc", "--session-id", "shared-by-all"];
  const fronts = Array.from({ length: 20 }, () => new Front(started(args, on)));
  const states = await Promise.all(fronts.map((front) => front.call({ id: 1, type: "get_state" })));
  const ids = states.map(({ data }) => (data as { sessionId: string }).sessionId);
  expect(new Set(ids)).toEqual(new Set(["shared-by-all"]));
  expect(await on.client.listSessions()).toHaveLength(1);
});

test("a session that the daemon has is forked during its run, and goes on", async () => {
  const on = await scene((gates) => ["Hello.", answer("one ", hold(gates.named("one")), "two")]);
  const session = await on.client.createSession({ cwd: on.world.cwd });
  await session.promptAndWait("Hi.");
  const running = session.promptAndWait("Go on.");
  await on.world.gates.named("one").reached;
  const front = new Front(started([dropInMain, "--mode", "rpc", "--fork", session.id], on));
  expect(await front.call({ id: 1, type: "get_last_assistant_text" })).toMatchObject({ data: { text: "Hello." } });
  on.world.gates.named("one").open();
  expect(await running).toBe("one two");
  expect(await on.client.listSessions()).toHaveLength(2);
});

/** The tools that the model was offered in its last request. */
function offered({ world }: Scene): readonly string[] | undefined {
  return world.provider.requests.at(-1)?.toolNames.toSorted();
}

async function prompted(front: Front): Promise<void> {
  const settled = front.event("agent_settled");
  await front.call({ id: "prompt", type: "prompt", message: "Hi." });
  await settled;
}

test("a stored session is opened with the options of the command line", async () => {
  const on = await scene(["Hello.", "Again."]);
  const session = await on.client.createSession({ cwd: on.world.cwd });
  await session.promptAndWait("Hi.");
  const { file } = await session.get();
  await session.close();
  const named = ["--mode", "rpc", "--session", file];
  const front = new Front(started([dropInMain, ...named, "--approve", "--name", "again", "--tools", "read"], on));
  await front.call({ id: 1, type: "get_state" });
  const [info] = await on.client.listSessions();
  expect(info).toMatchObject({ sessionId: session.id, projectTrust: "approved", name: "again" });
  await prompted(front);
  expect(offered(on)).toEqual(["read"]);
  front.end();
  await front.exited;
});

test("the command line's options reach an idle session that nobody else follows; a shared session keeps its own and says so", async () => {
  const on = await scene(["Hello.", "Again.", "And again."]);
  const extension = join(on.world.cwd, "extension.ts");
  writeFileSync(
    extension,
    'export default (pi) => pi.on("session_start", (_event, { ui }) => ui.notify("started"));\n',
  );
  const session = await on.client.createSession({ cwd: on.world.cwd, extensions: [extension] });
  await session.promptAndWait("Hi.");
  const { file, pid } = await session.get();
  const attached = [dropInMain, "--mode", "rpc", "--session", file];
  const same = new Front(started(attached, on));
  await same.call({ id: 1, type: "get_state" });
  same.end();
  await same.exited;
  const front = new Front(started([...attached, "--tools", "read,grep", "--name", "mine"], on));
  const told = front.told("started");
  await front.call({ id: 1, type: "get_state" });
  await told;
  expect(await session.get()).toMatchObject({ name: "mine", generation: 2 });
  await prompted(front);
  expect(offered(on)).toEqual(["grep", "read"]);
  const other = new Front(started([...attached, "--tools", "read"], on));
  await other.told("The session keeps its tools, because other connections follow it.");
  await prompted(front);
  expect(offered(on)).toEqual(["grep", "read"]);
  for (const each of [front, other]) {
    each.end();
    await each.exited;
  }
  expect((await session.get()).pid).not.toBe(pid);
});

test("a session that is open stays usable when pi refuses the options of a command line", async () => {
  const on = await scene(["Hello.", "Again."]);
  const session = await on.client.createSession({ cwd: on.world.cwd });
  await session.promptAndWait("Hi.");
  const { file } = await session.get();
  const refused = await ended(["--mode", "rpc", "--session", file, "--model", "no-such-model"], on);
  expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("no-such-model") });
  expect(await session.promptAndWait("Hi.")).toBe("Again.");
});
