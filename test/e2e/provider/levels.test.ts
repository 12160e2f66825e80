import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { httpCall, type ProviderEvent } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold, status } from "../../../provider/reply.ts";
import { shareStage } from "../../helpers/shared-stage.ts";
import { startStage } from "../../helpers/stage.ts";
import { type Watcher, watch } from "../../helpers/watcher.ts";

const shared = shareStage();
const mebibyte = 1024 * 1024;
const marked = "only-for-those-who-ask-7c1e";
const tool = answer("I run it.", call("bash", { command: "true" }));

/** The last request reported to a subscriber. */
async function prepared(watcher: Watcher) {
  return (await watcher.requests()).findLast(({ method }) => method === "provider/requestPrepared")?.params;
}

test("each subscriber gets only its own level", async () => {
  await using stage = await shared.use({ script: [status(529), tool, "Done."] });
  const session = await stage.session();
  const [file, id] = [stage.daemon.file, session.id];
  await using none = await watch(file, id);
  await using off = await watch(file, id, { provider: "off" });
  await using summary = await watch(file, id, { provider: "summary" });
  await using messages = await watch(file, id, { provider: "messages" });
  await using payload = await watch(file, id, { provider: "payload" });
  await session.promptAndWait(marked);
  for (const watcher of [none, off]) expect(await watcher.requests()).toEqual([]);
  const [, , last] = stage.provider.requests;
  expect(JSON.stringify(await summary.requests())).not.toContain(marked);
  expect(await prepared(summary)).not.toHaveProperty("messagesBytes");
  expect(await prepared(messages)).toMatchObject({ messages: expect.any(Array), messagesBytes: expect.any(Number) });
  expect(await prepared(messages)).not.toHaveProperty("payload");
  expect(JSON.stringify((await prepared(messages))?.messages)).toContain(marked);
  expect((await prepared(messages))?.messages).toHaveLength((await prepared(messages))?.messageCount);
  expect((await prepared(payload))?.payload).toEqual(last?.body);
  expect((await prepared(payload))?.messages).toEqual((await prepared(messages))?.messages);
  for (const watcher of [messages, payload]) expect(await watcher.summaries()).toEqual(await summary.summaries());
  expect(await summary.summaries()).toHaveLength(6);
  // Requests reserved for the daemon are taken. Each child that runs has a directory for its files.
  const left = readdirSync(join(stage.stateDir, "run"), { recursive: true, encoding: "utf8" });
  expect(left.filter((name) => basename(name).startsWith("body-"))).toEqual([]);
});

test("numbers have no holes for any subscriber, and `after` returns the position of the others", async () => {
  await using stage = await shared.use({ script: [status(529), tool, "Done."] });
  const session = await stage.session();
  await using without = await watch(stage.daemon.file, session.id);
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "payload" });
  await session.promptAndWait("Hello.");
  for (const { heard } of [without, watcher]) {
    const seqs = heard.flatMap(({ params }) => (params.seq === undefined ? [] : [params.seq]));
    expect(seqs).toEqual(seqs.map((_, index) => seqs[0] + index));
  }
  let seq = 0;
  for (const { method, params } of watcher.heard) {
    if (method.startsWith("provider/")) expect(params.after).toBe(seq);
    else seq = params.seq;
  }
});

test("requests of the past are not replayed", async () => {
  await using stage = await shared.use();
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
  await session.promptAndWait("Hello.");
  expect(await watcher.summaries()).toHaveLength(2);
  await using late = await watch(stage.daemon.file, session.id, { provider: "summary", after: 0 });
  await session.promptAndWait("Hello again.");
  expect(await watcher.summaries()).toHaveLength(4);
  expect(await late.requests()).toEqual((await watcher.requests()).slice(2));
});

test("subscribing again changes the level, and keeps it if none is given", async () => {
  await using stage = await shared.use();
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "summary" });
  const told = async (params: object): Promise<unknown[]> => {
    const before = (await watcher.requests()).length;
    await watcher.call("session/subscribe", { sessionId: session.id, ...params });
    await session.promptAndWait("Hello.");
    return (await watcher.requests()).slice(before).flatMap(({ params: { payload, messages } }) => [payload, messages]);
  };
  expect(await told({})).toEqual([undefined, undefined, undefined, undefined]);
  expect(await told({ provider: "payload" })).toEqual([expect.any(Object), expect.any(Array), undefined, undefined]);
  expect(await told({ provider: "off" })).toEqual([]);
  expect(await told({ provider: "summary" })).toHaveLength(4);
  await watcher.call("session/unsubscribe", { sessionId: session.id });
  expect(await told({})).toEqual([]);
});

test("the first request reported to a subscriber that joins during a request is the next one", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), tool), "Done."] });
  const session = await stage.session();
  await using first = await watch(stage.daemon.file, session.id, { provider: "summary" });
  const run = session.promptAndWait("Hello.");
  await gate.reached;
  await using late = await watch(stage.daemon.file, session.id, { provider: "summary" });
  gate.open();
  await run;
  expect(await first.summaries()).toHaveLength(4);
  expect(await late.requests()).toEqual((await first.requests()).slice(2));
});

test("a list and a payload that are too large are omitted, and their sizes are reported", async () => {
  const models = [{ id: "model-1", input: ["text", "image"], contextWindow: 10_000_000 }];
  await using stage = await startStage({ agent: { models } });
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id, { provider: "payload" });
  await using summary = await watch(stage.daemon.file, session.id, { provider: "summary" });
  await session.promptAndWait("Small.");
  expect(await prepared(watcher)).not.toHaveProperty("truncated");
  // pi would shrink an image in a prompt.
  const data = Buffer.alloc(4 * mebibyte, 7).toString("base64");
  const image = { type: "image", data, mimeType: "image/png" } as const;
  await session.push({ customType: "n", content: [{ type: "text", text: "Look." }, image] }).answered;
  expect(await prepared(watcher)).toMatchObject({ truncated: true, attempt: 1 });
  expect((await prepared(watcher))?.messagesBytes).toBeGreaterThan(data.length);
  for (const left of ["messages", "payload"]) expect(await prepared(watcher)).not.toHaveProperty(left);
  expect(await prepared(summary)).not.toHaveProperty("truncated");
  expect((await prepared(summary))?.payloadBytes).toBe(stage.provider.requests.at(-1)?.bodyBytes);
});

test("an unknown level is refused by name, and HTTP has no subscriptions", async () => {
  await using stage = await shared.use();
  const session = await stage.session();
  await using watcher = await watch(stage.daemon.file, session.id);
  for (const provider of ["all", "", "Summary", 1, null, ["summary"], "constructor"]) {
    const { error } = await watcher.call("session/subscribe", { sessionId: session.id, provider });
    expect(error).toMatchObject({ data: { name: "invalid_params", findings: [{ path: "/provider" }] } });
  }
  await expect(
    httpCall("session/subscribe", { sessionId: session.id, provider: "summary" }, { stateDir: stage.stateDir }),
  ).rejects.toMatchObject({ kind: "invalid_request" });
});

test("the client streams requests, to each reader at its own level", async () => {
  await using stage = await shared.use({ script: [status(529), "Understood."] });
  const session = await stage.session();
  await using plain = session.events();
  await using summary = session.providerEvents();
  await using payload = session.providerEvents({ level: "payload" });
  await Promise.all([plain.ready, summary.ready, payload.ready]);
  await session.promptAndWait("Hello.");
  const take = async (events: AsyncIterable<ProviderEvent>): Promise<readonly ProviderEvent[]> => {
    const taken: ProviderEvent[] = [];
    for await (const event of events) if (taken.push(event) === 4) return taken;
    return taken;
  };
  const [ofSummary, ofPayload] = await Promise.all([take(summary), take(payload)]);
  for (const events of [ofSummary, ofPayload]) {
    expect(events.map(({ kind }) => kind)).toEqual(["prepared", "failed", "prepared", "delivered"]);
  }
  expect(ofSummary[2]).not.toHaveProperty("payload");
  expect(ofPayload[2]).toMatchObject({ attempt: 2, payload: stage.provider.requests[1]?.body });
});
