import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Client, connect, type DaemonEvent } from "../../client/index.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, delayed, hold } from "../../provider/reply.ts";
import { TestEventSource } from "../helpers/event-source.ts";
import { FeedFold, stateOf } from "../helpers/feed-fold.ts";
import { startKillableStage } from "../helpers/killable-stage.ts";
import { endingWithDaemon } from "../helpers/stage.ts";

const extension = join(import.meta.dirname, "..", "fixtures", "extension", "asking.ts");

type Fits = (event: DaemonEvent) => boolean;

const summary = (events: readonly DaemonEvent[]): readonly string[] =>
  events.map(({ kind, state }) => `${kind} ${state}`);

/** Reads the feed from now on, and folds it. */
async function follow(client: Client) {
  const stream = client.daemonEvents();
  const start = await stream.ready;
  const [events, fold] = [[] as DaemonEvent[], new FeedFold(start.cursor)];
  return {
    ...{ stream, start, events, fold },
    /** Reads on until the first event that fits. */
    until: async (fits: Fits): Promise<DaemonEvent> => {
      for (;;) {
        const { value } = await stream.next();
        if (value === undefined) throw new Error("The feed has ended.");
        events.push(value);
        fold.event(value);
        if (fits(value)) return value;
      }
    },
  };
}

test("a client that follows the feed learns what happened in all sessions, also while the daemon was killed", async () => {
  const script = [answer("one"), delayed(hold(new Gate()), answer("late"))];
  const agent = { settings: { extensions: [extension] } };
  await using stage = await startKillableStage({ provider: { script }, agent, config: endingWithDaemon });
  await using client = await connect({ stateDir: stage.stateDir, validateResults: true });
  const { stream, start, events, fold, until } = await follow(client);
  const model = "scripted/model-1";
  const session = await client.createSession({ cwd: stage.cwd, model, dialogPolicy: { kind: "wait" } });
  const other = await client.createSession({ cwd: stage.cwd, model });
  session.push({ customType: "t", content: "hi", triggerTurn: true });
  expect(await until(({ kind }) => kind === "run")).toMatchObject({ state: "settled", sessionId: session.id });
  expect(
    summary(events)
      .filter((word) => word !== "session changed")
      .toSorted(),
  ).toEqual([...["delivery answered", "delivery delivered", "run settled", "session created", "session created"]]);
  expect(stream).toMatchObject({ lastSeq: events.at(-1)?.seq, epoch: start.epoch });

  // Killed during a run, with an open question.
  await session.prompt("wait");
  await stage.provider.waitForRequest(({ n }) => n === 2);
  const asked = session
    .prompt(`/ask ${JSON.stringify([{ method: "confirm", title: "Sure" }])}`, { ifRunning: "steer" })
    .catch(() => {});
  await until(({ state }) => state === "open");
  const before = events.length;
  await stage.restart();
  await asked;
  await other.close();
  await until(({ state }) => state === "closed");
  expect(
    summary(events.slice(before))
      .filter((word) => word !== "session changed")
      .toSorted(),
  ).toEqual([...["dialog resolved", "run interrupted", "session closed"]]);
  const { deliveries } = await client.listDeliveries();
  const { dialogs } = await client.call("dialog/list", {});
  const sessions = (await client.listSessions()).map(({ sessionId }) => sessionId);
  expect(fold.state).toEqual(stateOf({ sessions, deliveries, dialogs }));
  expect(fold.mistakes).toEqual([]);

  // The same numbers over the other transport, from a browser's last position.
  const { socketPath, token } = JSON.parse(readFileSync(join(stage.stateDir, "daemon.json"), "utf8")) as DaemonFile;
  const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
  const path = `/v1/events?after=${start.cursor}&epoch=${start.epoch}`;
  using whole = await TestEventSource.open({ socketPath, path, headers });
  await whole.until(({ seqs }) => seqs.length === events.length);
  const sent = whole.events.filter(({ event }) => event === "message");
  expect(sent.map(({ json }) => json.params)).toEqual(events);
  using rest = await TestEventSource.open({ socketPath, path, headers: { ...headers, "last-event-id": sent[2]?.id } });
  await rest.until(({ lastEventId }) => lastEventId === `${start.epoch}:${events.at(-1)?.seq}`);
  expect(rest.seqs).toEqual(whole.seqs.slice(3));
});
