import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { type Client, connect } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hold } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { filesWith } from "../helpers/files.ts";
import { startKillableStage } from "../helpers/killable-stage.ts";
import { patience } from "../helpers/patience.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

/** Prints a hash, so that the value itself is in no transcript. */
const hashOfPlanted = 'printf %s "$PLANTED" | sha256sum';
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const none = sha256("");

type Place = Pick<Stage, "agentDir" | "client" | "cwd" | "root">;

const newSecret = (): string => `planted-${randomBytes(12).toString("hex")}`;

/** The environment of a front end in a terminal. */
function windowOf({ agentDir }: Place, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = "", HOME = "" } = process.env;
  return { PATH, HOME, TERM: "xterm", ...agentDir.env, ...more };
}

async function create(
  { client, cwd }: Place,
  environment?: Record<string, string>,
): Promise<Awaited<ReturnType<typeof get>>> {
  const given = environment === undefined ? {} : { environment };
  return await client.call("session/create", { cwd, model: "scripted/model-1", ...given });
}

const get = (client: Client, sessionId: string) => client.call("session/get", { sessionId });

async function plantedIn({ client }: Place, sessionId: string): Promise<string> {
  const { output } = await client.call("session/bash", { sessionId, command: hashOfPlanted });
  return output.slice(0, 64);
}

/** The processes that have a text in their environment, or in their command line. */
function processesNaming(where: "environ" | "cmdline", text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/${where}`).includes(text);
      } catch {
        return false;
      }
    })
    .map(Number);
}

test("a client's variable is in the tools of its session, in no other session, no file, no answer and no log", async () => {
  const secret = newSecret();
  const name = `NAME_${randomBytes(8).toString("hex")}`;
  const lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line) => void lines.push(line) });
  await using stage = await startStage({
    log,
    env: () => ({ OF_DAEMON: "x" }),
    provider: { script: [answer(call("bash", { command: hashOfPlanted })), answer("done")] },
  });
  const { client, cwd } = stage;
  const other = await create(stage);
  const environment = windowOf(stage, { PLANTED: secret, [name]: "x", NODE_OPTIONS: "--no-warnings", npm_x: "x" });
  const params = { cwd, model: "scripted/model-1", environment, idempotencyKey: "once" };
  const info = await client.call("session/create", params);
  expect(info.environment).toEqual({ from: "client", fingerprint: expect.stringMatching(/^[\w-]{22}$/) });
  expect(other.environment?.from).toBe("daemon");
  expect(info.environment?.fingerprint).not.toBe(other.environment?.fingerprint);

  // The shell of the model, and of a client.
  await client.session(info.sessionId).promptAndWait("go");
  expect(JSON.stringify(stage.provider.requests.at(-1)?.body)).toContain(sha256(secret));
  expect(await plantedIn(stage, info.sessionId)).toBe(sha256(secret));
  expect(await plantedIn(stage, other.sessionId)).toBe(none);
  // It replaces the daemon's own environment, without what children never inherit.
  const left = 'printf %s "[$OF_DAEMON$NODE_OPTIONS$npm_x$PI_RPCD_VALIDATE]"';
  expect(await client.call("session/bash", { sessionId: info.sessionId, command: left })).toMatchObject({
    output: "[]",
  });
  expect(processesNaming("environ", secret)).toEqual([info.pid]);
  expect(processesNaming("cmdline", secret)).toEqual([]);

  // The key is kept without the environment.
  const again = { ...params, environment: { ...environment, PLANTED: newSecret() } };
  expect(await client.call("session/create", again)).toMatchObject({ sessionId: info.sessionId });

  const { events } = await client.call("session/events", { sessionId: info.sessionId, limit: 1_000 });
  const answers = JSON.stringify([info, await client.call("session/list", {}), events]);
  expect(answers).not.toContain(secret);
  expect(filesWith(stage.root, secret)).toEqual([]);
  await client.close();
  await stage.daemon.stop();
  expect(filesWith(stage.root, secret)).toEqual([]);
  expect(filesWith(stage.stateDir, name)).toEqual([]);
  expect(lines.filter((line) => line.includes(secret))).toEqual([]);
});

test("a variable is in no file after kill -9, and the next daemon's children have its own environment until a client gives another", async () => {
  const secret = newSecret();
  await using stage = await startKillableStage();
  const { sessionId, pid } = await create(stage, windowOf(stage, { PLANTED: secret }));
  expect(await plantedIn(stage, sessionId)).toBe(sha256(secret));
  await stage.restart(() => expect(filesWith(stage.root, secret)).toEqual([]));

  // The pi survived, so its environment is unknown to this daemon.
  const restored = await get(stage.client, sessionId);
  expect(restored).toMatchObject({ pid, restoredAt: expect.any(Number) });
  expect(restored.environment).toBeUndefined();
  await fallAsleep(stage.client, sessionId);
  expect(await plantedIn(stage, sessionId)).toBe(none);
  expect((await get(stage.client, sessionId)).environment?.from).toBe("daemon");

  const environment = windowOf(stage, { PLANTED: secret });
  const opened = await stage.client.call("session/open", { sessionId, environment });
  expect(opened.environment?.from).toBe("client");
  expect(await plantedIn(stage, sessionId)).toBe(sha256(secret));
  expect(filesWith(stage.root, secret)).toEqual([]);
});

test("a warm child of one environment is not given to a session with another", async () => {
  await using stage = await startStage({ env: () => ({ PI_RPCD_WARM_CHILDREN: "1" }) });
  const warm = async (): Promise<void> =>
    await vi.waitFor(async () => expect((await stage.client.info()).warmChildren).toBe(1), patience);
  const piBefore = async (sessions: readonly string[]): Promise<number[]> => {
    await warm();
    const known = await Promise.all(sessions.map(async (id) => (await get(stage.client, id)).pid));
    return processesNaming("environ", `PI_CODING_AGENT_DIR=${stage.agentDir.path}`).filter(
      (pid) => !known.includes(pid),
    );
  };
  const plain = [(await create(stage)).sessionId, (await create(stage)).sessionId];
  const spare = await piBefore(plain);
  const environment = windowOf(stage, { PLANTED: "mine" });
  const first = await create(stage, environment);
  expect(spare).not.toContain(first.pid);
  expect(await plantedIn(stage, first.sessionId)).toBe(sha256("mine"));

  // The same environment in another window is equal.
  const { TERM: _term, ...own } = { ...process.env, ...stage.agentDir.env } as Record<string, string>;
  const equal = await create(stage, { ...own, TERM: "another", WINDOWID: "7" });
  expect(equal.environment).toEqual({
    from: "client",
    fingerprint: (await get(stage.client, plain[0] ?? "")).environment?.fingerprint,
  });
  expect(spare).toContain(equal.pid);
});

test("a warm child with a client's variables goes only to sessions with the same variables", async () => {
  await using stage = await startStage({ env: () => ({ PI_RPCD_WARM_CHILDREN: "1" }) });
  const environment = windowOf(stage, { PLANTED: "mine" });
  for (let i = 0; i < 2; i += 1) await create(stage, environment);
  await vi.waitFor(async () => expect((await stage.client.info()).warmChildren).toBe(1), patience);
  const before = processesNaming("environ", "PLANTED=mine");
  const plain = await create(stage);
  const other = await create(stage, { ...environment, PLANTED: "other" });
  expect(before).not.toContain(plain.pid);
  expect(before).not.toContain(other.pid);
  expect(await plantedIn(stage, plain.sessionId)).toBe(none);
  const third = await create(stage, environment);
  expect(before).toContain(third.pid);
  expect(await plantedIn(stage, third.sessionId)).toBe(sha256("mine"));
});

test("an idle session's pi is started again with the environment of session/open, unless others follow it or it works", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [answer(hold(gate), "done")] } });
  const { client, stateDir } = stage;
  const { sessionId, pid } = await create(stage);
  const open = (planted: string) =>
    client.call("session/open", { sessionId, environment: windowOf(stage, { PLANTED: planted }) });
  const running = client.session(sessionId).runUntilSettled("go");
  await vi.waitFor(async () => expect((await get(client, sessionId)).state).toBe("running"), patience);
  expect(await open("in a run")).toMatchObject({ pid, environment: { from: "daemon" } });
  gate.open();
  await running;

  // Its own subscription keeps the pi awake.
  await client.call("session/subscribe", { sessionId, awake: true });
  const opened = await open("mine");
  expect(opened).toMatchObject({ state: "idle", generation: 2, environment: { from: "client" } });
  expect(opened.pid).not.toBe(pid);
  expect(await plantedIn(stage, sessionId)).toBe(sha256("mine"));
  expect(await open("mine")).toMatchObject({ generation: 2, pid: opened.pid });

  await using second = await connect({ stateDir });
  await second.call("session/subscribe", { sessionId });
  expect(await open("other")).toMatchObject({ generation: 2, environment: opened.environment });
  await second.call("session/unsubscribe", { sessionId });
  await second.call("session/acquireControl", { sessionId, policy: "exclusive" });
  expect(await open("other")).toMatchObject({ generation: 2, environment: opened.environment });
  expect(await plantedIn({ ...stage, client: second }, sessionId)).toBe(sha256("mine"));

  // A session that pi makes of this one keeps its pi, and so its environment.
  const { session } = await second.call("session/clone", { sessionId });
  expect(session.environment).toEqual(opened.environment);
});

test("an environment is refused over TCP, without admin, and where it leads to another directory of pi's configuration", async () => {
  await using stage = await startStage();
  const { client, cwd } = stage;
  const { url, token, socketPath } = stage.daemon.file;
  const environment = windowOf(stage, { PLANTED: newSecret() });
  const { sessionId } = await create(stage);
  const response = await fetch(`${url}/v1/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ cwd, environment }),
  });
  expect([response.status, await response.json()]).toEqual([403, expect.objectContaining({ name: "forbidden" })]);
  await using tcp = await connect({ url, token });
  const overTcp = {
    kind: "forbidden",
    data: { param: "environment" },
    message: expect.stringContaining("Unix socket"),
  };
  await expect(tcp.call("session/create", { cwd, environment })).rejects.toMatchObject(overTcp);
  await expect(tcp.call("session/open", { sessionId, environment })).rejects.toMatchObject(overTcp);

  const named = await client.call("token/create", { name: "ci", capabilities: ["observe", "prompt", "bash"] });
  await using limited = await connect({ socketPath, token: named.token });
  for (const refused of [
    limited.call("session/create", { cwd, environment }),
    limited.call("session/open", { sessionId, environment }),
  ])
    await expect(refused).rejects.toMatchObject({ kind: "forbidden", data: { needs: "admin" } });

  const { PI_CODING_AGENT_DIR: _own, ...homeOnly } = environment;
  for (const other of [
    homeOnly,
    { ...environment, PI_CODING_AGENT_DIR: join(stage.root, "other") },
    { ...environment, PI_CODING_AGENT_DIR: "" },
  ]) {
    const refused = await client.call("session/create", { cwd, environment: other }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ kind: "forbidden", data: { reason: "other_agent_directory" } });
    expect(JSON.stringify(refused)).not.toContain(environment["PLANTED"]);
  }
  expect((await client.call("session/list", {})).sessions).toHaveLength(1);
});

test("what pi wrote to stderr before it ended is in the error as it was", async () => {
  await using stage = await startStage();
  const refused = await stage.client
    .call("session/create", { cwd: stage.cwd, model: "nowhere/nothing" })
    .catch((error: unknown) => error as { readonly data: { readonly piStderr: string } });
  expect(refused).toMatchObject({ kind: "model_not_found" });
  expect((refused as { readonly data: { readonly piStderr: string } }).data.piStderr).toContain("nowhere");
});
