import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold } from "../../../provider/reply.ts";
import { startStage } from "../../helpers/stage.ts";
import { watch } from "../../helpers/watcher.ts";

interface Subscribed {
  readonly cursor: number;
  readonly epoch: string;
  readonly session?: { readonly state: string };
  readonly snapshot?: { readonly messages: readonly { readonly role: string }[]; readonly leafId: string };
}

test("a snapshot matches pi's state, with a child and without one, and later events continue from it", async () => {
  const gate = new Gate();
  const script = [answer(call("bash", { command: "true" })), answer("done"), answer("half ", hold(gate), "whole")];
  await using stage = await startStage({ provider: { script } });
  const session = await stage.session();
  await session.promptAndWait("work");
  const watcher = await watch(stage.daemon.file, session.id);
  const subscribe = async (params: object): Promise<Subscribed> =>
    (await watcher.call("session/subscribe", { sessionId: session.id, ...params })).result as Subscribed;

  const first = await subscribe({ snapshot: true });
  const { messages } = (await session.command({ type: "get_messages" })) as { messages: unknown[] };
  expect(first.snapshot?.messages).toEqual(messages);
  expect(first.session?.state).toBe("idle");

  // In the middle of an answer: its remaining deltas follow, and its end.
  const running = session.promptAndWait("more");
  await watcher.until(({ params }) => JSON.stringify(params).includes('"half '));
  const { snapshot, cursor, session: info } = await subscribe({ snapshot: true });
  expect(info?.state).toBe("running");
  expect(snapshot?.messages.map(({ role }) => role)).toEqual([
    ...messages.map((one) => (one as { role: string }).role),
    "user",
  ]);
  gate.open();
  await running;
  const ended = await watcher.until(
    ({ method, params }) => method === "session/event" && params.seq > cursor && params.event.type === "message_end",
  );
  expect(ended.params.event.message.role).toBe("assistant");

  const all = (await session.command({ type: "get_messages" })) as { messages: unknown[] };
  const { file } = await session.get();
  await watcher[Symbol.asyncDispose]();
  await stage.restart();
  await using later = await watch(stage.daemon.file, session.id);
  const { result } = await later.call("session/subscribe", { sessionId: session.id, snapshot: true });
  const rested = result as Subscribed;
  expect(rested.snapshot?.messages).toEqual(all.messages);
  const last = JSON.parse(readFileSync(file, "utf8").trimEnd().split("\n").at(-1) ?? "") as { id: string };
  expect(rested.snapshot?.leafId).toBe(last.id);
  expect(rested.session?.state).toBe("hibernated");

  // Only deltas are missing, so no snapshot is needed.
  const continued = await later.call("session/subscribe", {
    sessionId: session.id,
    snapshot: true,
    after: 3,
    epoch: rested.epoch,
  });
  expect(continued.result).not.toHaveProperty("snapshot");
  const other = await later.call("session/subscribe", {
    sessionId: session.id,
    snapshot: true,
    after: 3,
    epoch: "other",
  });
  expect(other.result).toHaveProperty("snapshot");
});

test("the log is read page by page over HTTP, with the same cursor", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.promptAndWait("one two three");
  const { url, token } = stage.daemon.file;
  const seqs: number[] = [];
  let after = 0;
  for (let cursor = 1; after < cursor; ) {
    const response = await fetch(`${url}/v1/sessions/${session.id}/events?after=${after}&limit=7&deltas=false`, {
      headers: { accept: "application/json", authorization: `Bearer ${token}` },
    });
    expect(response.status).toBe(200);
    const page = (await response.json()) as { events: { params: { seq: number } }[]; after: number; cursor: number };
    seqs.push(...page.events.map(({ params }) => params.seq));
    ({ after, cursor } = page);
  }
  const streamed: number[] = [];
  for await (const { seq, event } of session.events({ after: 0 })) {
    if (event.type !== "message_update") streamed.push(seq);
    if (event.type === "agent_settled") break;
  }
  expect(seqs.filter((seq) => streamed.includes(seq))).toEqual(streamed);
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
});
