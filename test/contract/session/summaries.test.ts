import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { connect } from "../../../client/index.ts";
import { startDaemon } from "../../../server/daemon.ts";
import { patience } from "../../helpers/patience.ts";
import { open, storedSession } from "../../helpers/stored.ts";

const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

async function startOn(root: string) {
  const env = { ...process.env, PI_CODING_AGENT_DIR: join(root, "agent"), PI_RPCD_WARM_CHILDREN: "0" };
  const log = pino({ level: "silent" });
  const stateDir = join(root, "state");
  const daemon = await startDaemon({ stateDir, pi: fakePi, helper: "unused", drainMs: 0, env, log });
  const client = await connect({ stateDir, validateResults: true });
  return {
    client,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await daemon.stop();
    },
  };
}

class Root implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "summaries-"));

  constructor() {
    mkdirSync(join(this.path, "state"), { mode: 0o700 });
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

const shown = { at: 5, outcome: "settled", lastText: { text: "Done.", at: 4 } } as const;

test("a list has the stored summaries, reads no session file for them, and has none for a damaged one", async () => {
  using root = new Root();
  const store = open(join(root.path, "state"));
  const ids = Array.from({ length: 300 }, (_, i) => `s${i}`);
  for (const id of ids) {
    // A directory: a read of it fails.
    const file = join(root.path, `${id}.jsonl`);
    mkdirSync(file);
    await store.sessions.put(storedSession(id, { cwd: root.path, file }));
    const total = { totalTokens: 3, costUsd: 0.5, isUnpriced: false };
    await store.sessions.summaries.put(id, JSON.stringify({ shown: { ...shown, usage: { totalTokens: 3 } }, total }));
  }
  const statement = store.database.prepare("UPDATE summaries SET record = ? WHERE session_id = ?");
  await store.database.keep("damage", statement, "{}", "s7");
  store.close();
  await using started = await startOn(root.path);
  const sessions = await started.client.listSessions();
  expect(sessions.filter(({ summary }) => summary === undefined).map(({ sessionId }) => sessionId)).toEqual(["s7"]);
  expect(sessions.find(({ sessionId }) => sessionId === "s8")?.summary).toEqual({
    ...shown,
    usage: { totalTokens: 3 },
  });
  expect(sessions).toHaveLength(300);
});

test("what a killed daemon had not read of a file is read by the next one, without pi, and closing forgets the summary", async () => {
  using root = new Root();
  const directory = join(root.path, "agent", "sessions", "s");
  mkdirSync(directory, { recursive: true });
  const file = join(directory, "s.jsonl");
  const cost = { input: 0, output: 0.25, cacheRead: 0, cacheWrite: 0, total: 0.25 };
  const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, totalTokens: 10, cost };
  const message = { role: "assistant", content: [], usage, provider: "p", model: "m" };
  writeFileSync(
    file,
    [
      { type: "session", id: "s", cwd: root.path },
      { type: "message", id: "a", parentId: null, message },
    ]
      .map((entry) => `${JSON.stringify(entry)}\n`)
      .join(""),
  );
  const store = open(join(root.path, "state"));
  await store.sessions.put(storedSession("s", { cwd: root.path, file, isOpened: true }));
  await store.sessions.summaries.put("s", JSON.stringify({ shown, isDue: true }));
  store.close();
  {
    await using started = await startOn(root.path);
    const session = started.client.session("s");
    const summary = { ...shown, usage: { totalTokens: 10, costUsd: 0.25 } };
    await expect.poll(async () => (await session.get()).summary, patience).toEqual(summary);
    expect(await session.get()).toMatchObject({ state: "hibernated", generation: 2 });
    await started.client.call("session/close", { sessionId: "s" });
    const opened = await started.client.call("session/open", { file });
    expect(opened.sessionId).toBe("s");
    expect(opened).not.toHaveProperty("summary");
  }
});
