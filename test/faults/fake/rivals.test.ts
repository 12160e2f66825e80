import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../../client/index.ts";
import { DaemonLives } from "../../helpers/daemon-lives.ts";
import { fakePi } from "./fake-stage.ts";

const rivals = 4;

test("of several daemons that start on one state directory at once exactly one succeeds, and the others name it", async () => {
  const root = mkdtempSync(join(tmpdir(), "rivals-"));
  const stateDir = join(root, "state");
  mkdirSync(stateDir);
  const env = { ...process.env, PI_RPCD_PI: fakePi, PI_CODING_AGENT_DIR: join(root, "agent") };
  try {
    for (let round = 0; round < 3; round += 1) {
      const lives = Array.from({ length: rivals }, () => new DaemonLives({ stateDir, env, cwd: root }));
      const outcomes = await Promise.allSettled(lives.map((life) => life.start()));
      const winners = lives.filter((life) => life.isAlive);
      expect(winners).toHaveLength(1);
      const client = await connect({ stateDir });
      expect((await client.info()).pid).toBe(winners[0]?.pid);
      await client.close();
      const refused = outcomes.filter((outcome) => outcome.status === "rejected");
      expect(refused).toHaveLength(rivals - 1);
      for (const { reason } of refused) expect(String(reason)).toContain("daemon_already_running");
      // When it ends, in whatever way, the next daemon can start.
      await winners[0]?.end(round === 1 ? "SIGKILL" : "SIGTERM");
    }
  } finally {
    rmSync(root, { recursive: true });
  }
});
