import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { connect } from "../../../client/index.ts";
import { RPC_PATH } from "../../../protocol/wire.ts";
import { type DaemonOptions, openDaemon } from "../../../server/daemon.ts";
import { StateDirectory } from "../../../server/state-directory.ts";

const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

/** A directory for daemons on a fake pi. */
function directory() {
  const root = mkdtempSync(join(tmpdir(), "daemon-"));
  const [stateDir, cwd] = [join(root, "state"), join(root, "cwd")];
  mkdirSync(cwd);
  const env = { ...process.env, PI_CODING_AGENT_DIR: join(root, "agent"), PI_RPCD_WARM_CHILDREN: "0" };
  const log = pino({ level: "silent" });
  return {
    stateDir,
    cwd,
    env,
    open: (options: Partial<DaemonOptions> = {}) =>
      openDaemon({ stateDir, pi: fakePi, helper: "unused", drainMs: 0, env, log, ...options }),
    [Symbol.dispose]: () => rmSync(root, { recursive: true }),
  };
}

/** What other processes can see of a daemon in its state directory. */
function seen(stateDir: string): string[] {
  return ["daemon.json", "daemon.sock"].filter((name) => existsSync(join(stateDir, name)));
}

test("an open daemon holds its directory and its sessions, and listens only when it serves", async () => {
  using place = directory();
  const { stateDir, cwd } = place;
  const first = await place.open();
  expect(seen(stateDir)).toEqual([]);
  await expect(place.open()).rejects.toMatchObject({ kind: "daemon_already_running" });
  const served = await first.serve();
  expect(await first.serve()).toBe(served);
  expect(seen(stateDir)).toEqual(["daemon.json", "daemon.sock"]);
  const client = await connect({ stateDir });
  const { id: sessionId } = await client.createSession({ cwd });
  await client.close();
  await first.drain();
  expect(await served.closed).toBe("stopped");

  const second = await place.open();
  expect(second.sessions.map((session) => [session.sessionId, session.state.kind])).toEqual([
    [sessionId, "hibernated"],
  ]);
  expect(seen(stateDir)).toEqual([]);
  await second.drain();
  await expect(second.serve()).rejects.toMatchObject({ kind: "shutting_down" });
  expect(seen(stateDir)).toEqual([]);
});

test("a daemon that cannot listen closes everything that it opened", async () => {
  using place = directory();
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  const { port } = taken.address() as { port: number };
  const failing = await place.open({ port });
  await expect(failing.serve()).rejects.toMatchObject({ name: "StartError" });
  await new Promise((resolve) => taken.close(resolve));
  const next = await place.open();
  expect(seen(place.stateDir)).toEqual([]);
  await next.drain();
});

test("a daemon that is drained while it begins to listen ends afterwards", async () => {
  using place = directory();
  const daemon = await place.open();
  const serving = daemon.serve();
  const drained = daemon.drain();
  const { closed } = await serving;
  await drained;
  expect(await closed).toBe("stopped");
  expect(seen(place.stateDir)).toEqual([]);
  await (await place.open()).drain();
});

test("a daemon that is drained while a child starts ends the child, and the call gets the reason", async () => {
  using place = directory();
  const { stateDir, cwd } = place;
  const daemon = await place.open({ env: { ...place.env, FAKE_PI: "hang-at-start" } });
  const { file } = await daemon.serve();
  const created = fetch(`${file.url}${RPC_PATH}`, {
    method: "POST",
    headers: { authorization: `Bearer ${file.token}`, "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/create", params: { cwd } }),
  });
  await expect.poll(() => readFileSync(join(stateDir, "children.jsonl"), "utf8")).toContain("\n");
  await daemon.drain();
  expect(await (await created).json()).toMatchObject({ error: { data: { name: "shutting_down" } } });
  expect(seen(stateDir)).toEqual([]);
  const next = await place.open();
  expect(next.sessions).toEqual([]);
  await next.drain();
});

/** Whether a shell command of another user succeeds. The directory needs no path for that user. */
function succeedsForAnotherUser(command: string, cwd: string): boolean {
  return spawnSync("/bin/sh", ["-c", command], { cwd, uid: 65_534, gid: 65_534 }).status === 0;
}

test("another user can neither enter nor use what a running daemon keeps", async ({ skip }) => {
  skip(process.getuid?.() !== 0, "only root may run a process as another user");
  using place = directory();
  const cache = join(dirname(place.stateDir), "cache");
  const daemon = await place.open({ env: { ...place.env, XDG_CACHE_HOME: cache } });
  await daemon.serve();
  const client = await connect({ stateDir: place.stateDir });
  const session = await client.createSession({ cwd: place.cwd });
  await session.push({ customType: "n", content: "x", deliverAs: "nextTurn" }).accepted;
  const { file } = await session.get();
  const kept = readdirSync(place.stateDir, { recursive: true, encoding: "utf8" });
  expect(kept).toEqual(expect.arrayContaining(["daemon.json", "daemon.sock", "token", "store.db", "run"]));
  const [directories, files] = [[place.stateDir, join(cache, "pi-rpcd", "pi")], [file]];
  for (const path of kept.map((name) => join(place.stateDir, name))) {
    (lstatSync(path).isDirectory() ? directories : files).push(path);
  }
  expect(directories.filter((path) => succeedsForAnotherUser("ls . || touch planted || cd .", path))).toEqual([]);
  expect(files.filter((path) => (lstatSync(path).mode & 0o077) !== 0)).toEqual([]);
  // The command itself works, where the directory allows it.
  expect(succeedsForAnotherUser("ls .", "/")).toBe(true);
  await client.close();
  await daemon.drain();
});

test("a start that meets a full disk names the state directory and what to do", async () => {
  using place = directory();
  const full = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
  using _acquire = vi.spyOn(StateDirectory, "acquire").mockImplementationOnce(() => {
    throw full;
  });
  await expect(place.open()).rejects.toMatchObject({
    kind: "state_dir_unusable",
    message: expect.stringContaining(`${place.stateDir} is full`),
  });
  const opened = await place.open();
  using _announce = vi.spyOn(StateDirectory.prototype, "announce").mockImplementationOnce(() => {
    throw full;
  });
  await expect(opened.serve()).rejects.toMatchObject({ kind: "state_dir_unusable" });
});
