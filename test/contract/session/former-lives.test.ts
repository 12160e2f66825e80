import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { connect } from "../../../client/index.ts";
import type { Dialog } from "../../../protocol/dialog.ts";
import { startDaemon } from "../../../server/daemon.ts";
import { DeliveryStore } from "../../../server/store/deliveries.ts";
import { DialogStore } from "../../../server/store/dialogs.ts";
import { EventTail } from "../../../server/store/event-tail.ts";
import { PromptStore } from "../../../server/store/prompts.ts";
import { open, pushOf, storedDelivery, storedPrompt, storedSession } from "../../helpers/stored.ts";

const fakePi = join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs");

const dialogOf = { closed: "01900000-0000-7000-8000-000000000001", again: "01900000-0000-7000-8000-000000000002" };

const frame = (seq: number, of: string): Buffer => {
  const params = { sessionId: "again", seq, at: 1, generation: 1, event: { type: "agent_start", of } };
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "session/event", params }));
};

test("after a daemon with a failing store, the next one reports, keeps and delivers nothing of a closed session", async () => {
  const root = mkdtempSync(join(tmpdir(), "former-"));
  const stateDir = join(root, "state");
  mkdirSync(stateDir, { mode: 0o700 });
  try {
    const store = open(stateDir);
    const deliveries = new DeliveryStore(store.database);
    for (const sessionId of ["closed", "again"] as const) {
      const file = join(root, `${sessionId}.jsonl`);
      await store.sessions.put(storedSession(sessionId, { cwd: root, file, logEpoch: "first" }));
      await new PromptStore(store.database).add(storedPrompt(`p-${sessionId}`, sessionId));
      const dialog = { dialogId: dialogOf[sessionId], sessionId, state: "open", openedAt: 1, title: "", requestId: "" };
      await new DialogStore(store.database).put(dialog as unknown as Dialog);
    }
    for (const [id, sessionId] of Object.entries({ d1: "closed", d2: "again", d3: "never" })) {
      await deliveries.add({ push: pushOf(id, "text"), delivery: storedDelivery(id, sessionId) });
    }
    store.close();
    // Only the list of sessions and the tail were written after the store stopped accepting writes.
    const again = storedSession("again", { cwd: root, file: join(root, "again.jsonl"), logEpoch: "second" });
    for (const line of [
      { sessionId: "closed", closed: true, logEpoch: "first" },
      { sessionId: "again", closed: true, logEpoch: "first" },
      { ...again, stored: false },
    ]) {
      appendFileSync(join(stateDir, "sessions.jsonl"), `${JSON.stringify(line)}\n`);
    }
    const tail = new EventTail(stateDir, () => {}, 1 << 20);
    tail.append("first", 1, frame(1, "the former"));
    tail.append("first", 2, frame(3, "the former"));
    tail.append("second", 1, frame(1, "the new one"));
    tail.close();

    const env = { ...process.env, PI_CODING_AGENT_DIR: join(root, "agent"), PI_RPCD_WARM_CHILDREN: "0" };
    const log = pino({ level: "silent" });
    const daemon = await startDaemon({ stateDir, pi: fakePi, helper: "unused", drainMs: 0, env, log });
    const client = await connect({ stateDir, validateResults: true });
    try {
      const { sessions } = await client.call("session/list", {});
      expect(sessions.map(({ sessionId, epoch, pendingDeliveries }) => [sessionId, epoch, pendingDeliveries])).toEqual([
        ["again", "second", 0],
      ]);
      const { deliveries: left } = await client.call("delivery/list", {});
      expect(left.map(({ deliveryId, state, reason }) => [deliveryId, state, reason?.code]).sort()).toEqual([
        ["d1", "failed", "session_closed"],
        ["d2", "failed", "session_closed"],
        ["d3", "failed", "session_closed"],
      ]);
      for (const promptId of ["p-closed", "p-again"]) {
        await expect(client.call("prompt/get", { promptId })).rejects.toMatchObject({ kind: "prompt_not_found" });
      }
      for (const dialogId of Object.values(dialogOf)) {
        const answer = client.call("dialog/respond", { dialogId, answer: { cancelled: true } });
        await expect(answer).rejects.toMatchObject({ kind: "dialog_not_found" });
      }
      const { events } = await client.call("session/events", { sessionId: "again", after: 0 });
      const told = JSON.stringify(events);
      expect([told.includes("the new one"), told.includes("the former")]).toEqual([true, false]);
    } finally {
      await client.close();
      await daemon.stop();
    }
  } finally {
    rmSync(root, { recursive: true });
  }
});
