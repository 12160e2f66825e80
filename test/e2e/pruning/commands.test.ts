import { join } from "node:path";
import { type Logger, pino } from "pino";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import { answer, call } from "../../../provider/reply.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

const emitting = join(import.meta.dirname, "..", "..", "fixtures", "extension", "emitting.ts");
const emit = (name: string) => call("emit", { text: `line of ${name}\n`, times: 400 });

/** The output of a command for users, from the session's events. */
async function say(session: SessionHandle, command: string): Promise<string> {
  await using events = session.events();
  await session.prompt(command);
  for await (const { event } of events) {
    const { type, method, message } = event as Readonly<Record<string, unknown>>;
    if (type === "extension_ui_request" && method === "notify") return String(message);
  }
  throw new Error("The session has ended.");
}

async function withHistory(stage: Stage): Promise<SessionHandle> {
  const pruning = {
    enabled: true,
    debug: true,
    protectRecentTurns: 1,
    strategies: { deduplication: { enabled: false } },
  };
  const where = { cwd: stage.cwd, model: "scripted/model-1", extensions: [emitting] };
  const session = await stage.client.createSession({ ...where, pruning });
  stage.provider.add(answer(emit("first")), answer(emit("second")), answer("Done."));
  await session.runUntilSettled("Emit.");
  await session.runUntilSettled("And now?");
  return session;
}

test("commands and methods of pruning do the same through the daemon, and survive its pi (R002-23)", async () => {
  const lines: string[] = [];
  const log: Logger = pino({ level: "info" }, { write: (line) => void lines.push(line) });
  await using stage = await startStage({ log });
  const session = await withHistory(stage);
  const { id: sessionId } = session;
  const { client } = stage;
  await using told = await Notifications.of(stage.stateDir, sessionId);

  expect(await say(session, "/dcp help")).toContain("/dcp sweep [N]");
  expect(await say(session, "/dcp context")).toContain("There are no blocks.");
  const ranges = [{ startId: "m001", endId: "m002", summary: "It was emitted." }];
  const made = await client.call("pruning/compress", { sessionId, topic: "First things", ranges });
  expect(made).toMatchObject({ state: "done", blocks: [{ id: "b1", startId: "m001", endId: "m002" }] });
  const change = await told.until(({ name }) => name === "pruning/changed");
  expect(change.params).toMatchObject({ cause: "compress", blocks: ["b1"], tokens: made.tokens });

  // The same key is the same call.
  const idempotencyKey = "open-b1";
  const opened = await client.call("pruning/decompress", { sessionId, block: "b1", idempotencyKey });
  expect(await client.call("pruning/decompress", { sessionId, block: "b1", idempotencyKey })).toEqual(opened);
  await expect(client.call("pruning/decompress", { sessionId, block: "b1" })).rejects.toMatchObject({
    kind: "block_not_restorable",
  });
  await expect(client.call("pruning/recompress", { sessionId, block: "b7" })).rejects.toMatchObject({
    kind: "block_not_found",
  });
  expect(await say(session, "/dcp recompress b1")).toContain("b1 is active.");
  expect(await say(session, "/dcp manual on")).toBe("Manual mode is on.");
  const swept = await client.call("pruning/sweep", { sessionId, last: 1 });
  expect(swept.pruned).toMatchObject([{ tool: "emit", strategy: "sweep" }]);

  // pi is another one now.
  await client.call("session/hibernate", { sessionId, force: true });
  const inspected = await client.call("pruning/inspect", { sessionId });
  expect(inspected).toMatchObject({ mode: "manual", blocks: [{ id: "b1", state: "active" }] });
  expect(await client.call("pruning/setMode", { sessionId, mode: "automatic" })).toEqual({ mode: "automatic" });
  expect(await say(session, "/dcp stats")).toContain("b1 First things");
  expect((await client.call("pruning/stats", { sessionId })).strategies).toMatchObject({ sweep: { count: 1 } });
  const exported = await client.call("pruning/export", { sessionId });
  expect(JSON.parse(await say(session, "/dcp export"))).toEqual(exported);

  // Asking the model takes a run of its own.
  const again = call("compress", {
    topic: "More",
    ranges: [{ startId: "b1", endId: "m003", summary: "(b1) And more." }],
  });
  stage.provider.add(answer(again), answer("Compressed."));
  expect(await client.call("pruning/compress", { sessionId, focus: "All of it." })).toMatchObject({ state: "asked" });
  await client.call("session/waitForIdle", { sessionId });
  const { blocks } = await client.call("pruning/inspect", { sessionId });
  expect(blocks.map(({ id, state }) => [id, state])).toEqual([
    ["b1", "consumed"],
    ["b2", "active"],
  ]);

  // The debug lines are in the daemon's log.
  const facts = lines
    .map((line) => JSON.parse(line) as { part?: string; facts?: object })
    .filter(({ part }) => part === "pruning");
  expect(facts.map(({ facts: one }) => one)).toContainEqual({ asked: "inspect" });

  // The daemon reads the project's file again.
  expect(await say(session, "/dcp reload")).toContain("read again");
  await client.call("pruning/configure", { sessionId, pruning: { enabled: false } });
  await expect(client.call("pruning/inspect", { sessionId })).rejects.toMatchObject({ kind: "pruning_disabled" });
  expect(await say(session, "/dcp sweep")).toContain("off");
});
