import { renameSync } from "node:fs";
import { expect, test } from "vitest";
import type { Client, SessionHandle, SessionInfo } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hold } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { startKillableStage } from "../helpers/killable-stage.ts";
import { patience } from "../helpers/patience.ts";
import { shareStage } from "../helpers/shared-stage.ts";
import { endingWithDaemon } from "../helpers/stage.ts";

const compaction = { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 };
const shared = shareStage({ agent: { settings: { compaction } } });

type Summary = NonNullable<SessionInfo["summary"]>;

async function listed(client: Client, sessionId: string): Promise<SessionInfo["summary"]> {
  const sessions = await client.listSessions();
  return sessions.find((session) => session.sessionId === sessionId)?.summary;
}

/** The summary of the newest run, once the daemon has read what it cost. */
async function summaryOf(session: SessionHandle): Promise<Summary> {
  const summary = async (): Promise<Summary | undefined> => (await session.get()).summary;
  await expect.poll(async () => (await summary())?.usage, patience).toBeDefined();
  return (await summary()) as Summary;
}

/** Waits until the summary has what a report of the costs has. */
async function agreesWithReport(client: Client, session: SessionHandle): Promise<Summary> {
  const { total } = await client.call("cost/report", { sessionId: session.id });
  const { totalTokens, cost } = total;
  const usage = async (): Promise<Summary["usage"]> => (await session.get()).summary?.usage;
  await expect.poll(usage, patience).toEqual({ totalTokens, costUsd: cost.total });
  return await summaryOf(session);
}

test("the end of a run leaves a summary in the session's list, its state and the notifications about it", async () => {
  await using stage = await shared.use({
    script: [answer("I look.", call("bash", { command: "true" })), `  The end.\n${"é".repeat(300)}`, "Second."],
  });
  const { client } = stage;
  const session = await stage.freshSession();
  const changed: SessionInfo[] = [];
  const stop = await client.onSessionChanged(({ session: info }) => {
    if (info?.sessionId === session.id) changed.push(info);
  });
  const before = await session.get();
  expect(before).not.toHaveProperty("summary");
  const startedAt = Date.now();
  await session.promptAndWait("Look");
  const summary = await agreesWithReport(client, session);
  expect(summary).toMatchObject({ outcome: "settled", lastText: { text: `The end.\n${"é".repeat(191)}` } });
  expect(summary.at).toBeGreaterThanOrEqual(startedAt);
  expect(summary.lastText?.at).toBeGreaterThanOrEqual(startedAt);
  expect(await listed(client, session.id)).toEqual(summary);
  await expect.poll(() => changed.at(-1)?.summary, patience).toEqual(summary);
  const { events } = await client.call("session/events", { sessionId: session.id, after: before.cursor });
  const told = events.filter(({ method }) => method === "session/updated").at(-1);
  expect(told?.params).toMatchObject({ session: { summary } });
  // As pi measures it.
  const { contextUsage } = await client.call("session/getStats", { sessionId: session.id });
  expect(summary.contextUsage?.contextWindow).toBe(contextUsage?.contextWindow);
  expect(contextUsage?.tokens).toBeGreaterThan(0);
  expect(summary.contextUsage).toEqual(contextUsage);

  await session.promptAndWait("And now?");
  const second = await agreesWithReport(client, session);
  expect(second.lastText?.text).toBe("Second.");
  expect(second.usage?.totalTokens).toBeGreaterThan(summary.usage?.totalTokens ?? 0);
  stop();
});

test("a stopped run changes only what it has, and after a compaction the size of the context is not known", async () => {
  const gate = new Gate();
  await using stage = await shared.use({
    script: ["First words.", answer(call("bash", { command: "true" })), answer("Half", hold(gate)), "A summary."],
  });
  const { client } = stage;
  const session = await stage.freshSession();
  await session.promptAndWait("One");
  const first = await agreesWithReport(client, session);
  await session.prompt("Two");
  await gate.reached;
  await session.abort();
  await session.waitForIdle();
  const stopped = await agreesWithReport(client, session);
  expect(stopped).toMatchObject({ outcome: "aborted", lastText: { text: "Half" } });
  expect(stopped.contextUsage?.tokens).toBeGreaterThan(first.contextUsage?.tokens ?? 0);
  await client.call("session/compact", { sessionId: session.id });
  const compacted = (await session.get()).summary;
  expect(compacted).toMatchObject({ outcome: "aborted", lastText: { text: "Half" } });
  expect(compacted).not.toHaveProperty("contextUsage");
});

test("a summary needs no pi and no file of the session, and a fork begins with none", async () => {
  await using stage = await shared.use({ script: ["First words.", "Kept words.", "In the fork."] });
  const { client } = stage;
  const session = await stage.freshSession();
  await session.promptAndWait("Say it");
  const first = await agreesWithReport(client, session);
  await session.promptAndWait("Say it again");
  const summary = await agreesWithReport(client, session);
  const { messages } = await client.call("session/getForkMessages", { sessionId: session.id });
  const { entryId } = messages.at(-1) ?? { entryId: "" };
  const { session: made } = await client.call("session/fork", { sessionId: session.id, entryId });
  expect(made).not.toHaveProperty("summary");
  expect(await listed(client, made.sessionId)).toBeUndefined();
  await fallAsleep(client, session.id);
  expect(await listed(client, session.id)).toEqual(summary);
  const { file } = await session.get();
  renameSync(file, `${file}.away`);
  try {
    expect(await listed(client, session.id)).toEqual(summary);
  } finally {
    renameSync(`${file}.away`, file);
  }
  // The fork's file begins with the first request of the other session.
  const fork = client.session(made.sessionId);
  await fork.promptAndWait("Go on");
  const forked = await agreesWithReport(client, fork);
  expect(forked.lastText?.text).toBe("In the fork.");
  expect(forked.usage?.totalTokens).toBeGreaterThan(first.usage?.totalTokens ?? 0);
});

test("a summary survives the daemon, also a killed one, which leaves an interrupted run", async () => {
  const gate = new Gate();
  await using stage = await startKillableStage({
    config: endingWithDaemon,
    provider: { script: ["Known words.", answer("Never ", hold(gate), "whole")] },
  });
  const { id } = await stage.session();
  await stage.client.session(id).promptAndWait("Say it");
  const before = await agreesWithReport(stage.client, stage.client.session(id));
  await stage.restart();
  expect(await listed(stage.client, id)).toEqual(before);
  await stage.client.session(id).prompt("Say more");
  await gate.reached;
  // The provider can have the request before the daemon has read that the run began.
  await expect.poll(async () => (await stage.client.session(id).get()).runId, patience).toBeDefined();
  await stage.restart();
  const outcome = async (): Promise<unknown> => (await stage.client.session(id).get()).summary?.outcome;
  await expect.poll(outcome, patience).toBe("interrupted");
  const after = await agreesWithReport(stage.client, stage.client.session(id));
  expect(after).toEqual({ ...before, at: after.at, outcome: "interrupted" });
  expect(after.at).toBeGreaterThan(before.at);
});
