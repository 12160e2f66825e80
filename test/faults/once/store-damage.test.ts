import { copyFileSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startStage } from "../../helpers/stage.ts";

const parts = ["store.db", "store.db-wal", "store.changes", "store.mark", "sessions.jsonl"];

interface Damage {
  readonly title: string;
  /** Whose files are damaged: a killed daemon's still have a WAL. */
  readonly ended: "killed" | "in order";
  readonly damage: (stateDir: string) => void;
}

const damages: readonly Damage[] = [
  {
    ended: "in order",
    title: "its header filled with zeros",
    damage: (stateDir) => {
      const bytes = readFileSync(join(stateDir, "store.db"));
      writeFileSync(join(stateDir, "store.db"), bytes.fill(0, 0, 512));
    },
  },
  {
    ended: "killed",
    title: "its WAL removed",
    damage: (stateDir) => truncateSync(join(stateDir, "store.db-wal"), 0),
  },
  {
    ended: "killed",
    title: "its WAL truncated",
    damage: (stateDir) => {
      const file = join(stateDir, "store.db-wal");
      const bytes = readFileSync(file);
      writeFileSync(file, bytes.fill(0, Math.floor(bytes.length / 2)));
    },
  },
];

describe("a daemon that finds its store damaged", () => {
  for (const { title, ended, damage } of damages) {
    test(`with ${title}: reports it, keeps its sessions, and delivers again, nothing twice`, async () => {
      await using stage = await startStage();
      const session = await stage.session();
      const first = session.push({ customType: "t", content: "The first text, long enough to be found." });
      await first.answered;
      const killed = parts.filter((name) => existsSync(join(stage.stateDir, name)));
      for (const name of killed) copyFileSync(join(stage.stateDir, name), join(stage.root, name));
      await stage.restart(() => {
        for (const name of ended === "killed" ? parts : []) rmSync(join(stage.stateDir, name), { force: true });
        for (const name of ended === "killed" ? killed : [])
          copyFileSync(join(stage.root, name), join(stage.stateDir, name));
        damage(stage.stateDir);
      });
      const { store } = await stage.client.info();
      expect(store).toMatchObject({ state: "open", damaged: [{ lost: { transactions: 0, sessionIds: [] } }] });
      expect(existsSync(store?.damaged[0]?.path ?? "")).toBe(true);
      const again = stage.client.session(session.id);
      const second = again.push({ customType: "t", content: "The second text, after the damage." });
      await second.answered;
      // The same push under its id again, as from a client that is not sure.
      const repeated = again.push({
        deliveryId: first.id,
        customType: "t",
        content: "The first text, long enough to be found.",
      });
      await repeated.accepted;
      const requests = stage.provider.requests;
      expect(requests.at(-1)?.countText("The first text, long enough to be found.", { roles: ["user"] })).toBe(1);
      expect(requests.at(-1)?.countText("The second text, after the damage.", { roles: ["user"] })).toBe(1);
    });
  }
});
