import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { connect } from "../../../client/index.ts";
import { type Daemon, startDaemon } from "../../../server/daemon.ts";
import { fakePi } from "./fake-stage.ts";

test("a daemon whose state directory is removed, moved or replaced stores nothing more and ends in order", async () => {
  const root = mkdtempSync(join(tmpdir(), "state-"));
  const stateDir = join(root, "state");
  const logged: string[] = [];
  const env = {
    ...process.env,
    PI_CODING_AGENT_DIR: join(root, "agent"),
    PI_RPCD_WARM_CHILDREN: "0",
  };
  const log = pino({ level: "error" }, { write: (line) => logged.push(line) });
  const start = (): Promise<Daemon> => startDaemon({ stateDir, pi: fakePi, helper: "unused", drainMs: 0, env, log });
  const daemons: Daemon[] = [];
  try {
    for (const lose of [() => rmSync(stateDir, { recursive: true }), () => renameSync(stateDir, join(root, "moved"))]) {
      const first = await start();
      daemons.push(first);
      const client = await connect({ stateDir, reconnect: false });
      const session = await client.createSession({ cwd: root });
      const { pid } = await session.get();
      lose();
      const refused = session.push({ customType: "t", content: "c" }).accepted;
      await expect(refused).rejects.toMatchObject({ kind: "store_failed" });
      // Another daemon may start before the first has noticed: its files are not touched.
      const second = await start();
      daemons.push(second);
      const other = await connect({ stateDir });
      await other.createSession({ cwd: root });
      const book = readFileSync(join(stateDir, "children.jsonl"), "utf8");
      await first.closed;
      await client.close();
      expect(() => process.kill(pid ?? 0, 0)).toThrow("ESRCH");
      await expect(fetch(first.file.url)).rejects.toThrow("fetch failed");
      expect(readFileSync(join(stateDir, "children.jsonl"), "utf8")).toBe(book);
      for (const name of ["daemon.json", "daemon.sock", "run"]) expect(existsSync(join(stateDir, name))).toBe(true);
      expect((await other.listSessions()).length).toBe(1);
      await other.close();
      await second.stop();
    }
    const reasons = logged.filter((line) => line.includes("the state directory was removed or replaced by another"));
    expect(reasons).toHaveLength(2);
  } finally {
    await Promise.all(daemons.map((daemon) => daemon.stop().catch(() => {})));
    rmSync(root, { recursive: true });
  }
});
