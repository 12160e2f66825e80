import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Client, connect, readDaemonFile } from "../../../client/index.ts";
import { startTimeOf } from "../../../server/pi/processes.ts";
import { DaemonLives } from "../../helpers/daemon-lives.ts";
import { EventVerifier } from "../../helpers/event-verifier.ts";
import { endLeft } from "../../helpers/stage.ts";
import { fakePi, largeLines } from "./fake-stage.ts";

interface Followed {
  readonly handle: Awaited<ReturnType<Client["createSession"]>>;
  readonly witness: EventVerifier;
}

/** Daemons that give active runs this time limit when they end. */
async function stageOf(drainMs: number, pi = fakePi) {
  const root = mkdtempSync(join(tmpdir(), "end-"));
  const stateDir = join(root, "state");
  const faults: string[] = [];
  const env = {
    ...process.env,
    PI_RPCD_PI: pi,
    PI_CODING_AGENT_DIR: join(root, "agent"),
    PI_RPCD_DRAIN_MS: String(drainMs),
    PI_RPCD_WARM_CHILDREN: "0",
    XDG_CACHE_HOME: join(root, "cache"),
  };
  const lives = new DaemonLives({ stateDir, env, cwd: root, onFault: (fault) => faults.push(fault) });
  await lives.start();
  const client = await connect({ stateDir });
  const witnesses: EventVerifier[] = [];
  const log = (): string => (existsSync(lives.logFile) ? readFileSync(lives.logFile, "utf8") : "");
  return {
    root,
    stateDir,
    lives,
    client,
    faults,
    file: join(root, "now"),
    /** A session whose pi is in a run ordered by this prompt. */
    running: async (text: string, ...behaviours: string[]): Promise<Followed> => {
      const cwd = mkdtempSync(join(root, "cwd-"));
      writeFileSync(join(cwd, ".fake-pi"), behaviours.join(","));
      const handle = await client.createSession({ cwd });
      const witness = new EventVerifier(handle.id);
      witnesses.push(witness);
      await witness.follow(await readDaemonFile(stateDir));
      await handle.prompt(text);
      await witness.until(({ method }) => method === "run/started");
      return { handle, witness };
    },
    /** Resolves when the daemon has reported its end. */
    heard: () => expect.poll(log).toContain('"ending"'),
    /** The daemon, its children and their descendants, found by a marker in their environments. */
    processes: (): readonly number[] =>
      readdirSync("/proc")
        .map(Number)
        .filter((pid) => pid > 0 && environmentOf(pid).includes(join(root, "agent"))),
    [Symbol.asyncDispose]: async () => {
      for (const witness of witnesses) await witness.leave();
      await client.close();
      await lives.end("SIGKILL");
      endLeft(env);
      rmSync(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    },
  };
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return "";
  }
}

const ended = async ({ witness }: Followed) =>
  (await witness.until(({ method }) => method === "run/ended")).params["outcome"];

test("a daemon that gets SIGTERM lets active runs finish, accepts no new work, and leaves nothing", async () => {
  await using stage = await stageOf(120_000);
  const sessions = [await stage.running(`until ${stage.file}`), await stage.running(`until ${stage.file}`)];
  const [first] = sessions;
  expect(stage.processes()).toHaveLength(3);
  const end = stage.lives.end("SIGTERM");
  await stage.heard();
  const refused = { data: { name: "shutting_down" } };
  await expect(first?.handle.prompt("more", { ifRunning: "steer" })).rejects.toMatchObject(refused);
  await expect(stage.client.createSession({ cwd: stage.file })).rejects.toMatchObject(refused);
  expect(stage.processes()).toHaveLength(3);
  writeFileSync(stage.file, "");
  expect(await Promise.all(sessions.map(ended))).toEqual(["settled", "settled"]);
  await end;
  expect([stage.lives.exitCode, stage.faults, stage.processes()]).toEqual([0, [], []]);
});

test("a run that outlasts a shutdown's time limit is interrupted, and its pi leaves nothing", async () => {
  await using stage = await stageOf(300);
  const leaving = await stage.running(`until ${stage.file}`, "leave-a-process", "leave-an-unmarked-process");
  const followed = [leaving, await stage.running("hello", "keep-running")];
  const { pid } = (await leaving.witness.event("left")) as { readonly pid: number };
  expect(await startTimeOf(pid)).toEqual(expect.any(String));
  expect(stage.processes()).toHaveLength(4);
  const end = stage.lives.end("SIGTERM");
  expect(await Promise.all(followed.map(ended))).toEqual(["interrupted", "interrupted"]);
  await end;
  expect([stage.lives.exitCode, stage.faults, stage.processes()]).toEqual([0, [], []]);
  // A zombie keeps its process id, but has ended.
  expect(await startTimeOf(pid)).toBeUndefined();
});

test.each(["SIGKILL", "SIGTERM"] as const)(
  "what was sent before the %s of a daemon that handles large records has the same bytes for its successor's readers",
  async (signal) => {
    await using stage = await stageOf(0);
    const lines = join(stage.root, "lines");
    writeFileSync(lines, largeLines(6).join(""));
    const { handle, witness } = await stage.running(`write ${lines}`);
    await witness.event("tool_execution_end");
    await stage.lives.end(signal);
    await witness.leave();
    expect(stage.faults).toEqual([]);
    const daemon = await stage.lives.start();
    await using reader = new EventVerifier(handle.id);
    await reader.follow(daemon);
    const sent = new Map(
      witness.told.flatMap(({ params }) => (params.event === undefined ? [] : [[params.seq, params]])),
    );
    await reader.until(({ params }) => params.seq >= Math.max(...sent.keys()));
    expect(reader.told.filter(({ params }) => sent.has(params.seq)).map(({ params }) => params)).toEqual([
      ...sent.values(),
    ]);
    expect([...witness.violations, ...reader.violations]).toEqual([]);
  },
);

test("a daemon removes the start files of a killed one, and no others", async () => {
  const pi = join(mkdtempSync(join(tmpdir(), "pi-")), "pi");
  onTestFinished(() => rmSync(dirname(pi), { recursive: true }));
  // It never gets to reading its configuration.
  writeFileSync(pi, '#!/bin/sh\n[ "$1" = --version ] && exec echo 1.5.2\nexec cat\n', { mode: 0o700 });
  await using stage = await stageOf(0, pi);
  const cache = join(stage.root, "cache", "pi-rpcd", "pi");
  const left = (): string[] =>
    existsSync(cache) ? readdirSync(cache).filter((name) => name.startsWith("helper-")) : [];
  const client = await connect({ stateDir: stage.stateDir, reconnect: false });
  const created = client.createSession({ cwd: stage.root }).catch(({ kind }: { readonly kind: string }) => kind);
  await expect.poll(left).toHaveLength(1);
  // Another daemon of this user starts a pi at the same time.
  writeFileSync(join(cache, "helper-other.json"), "{}");
  await stage.lives.end("SIGKILL");
  await created;
  await client.close();
  expect(left()).toHaveLength(2);
  await stage.lives.start();
  expect(left()).toEqual(["helper-other.json"]);
});
