import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ContextDocument } from "../../context/document/document.ts";
import { normalise } from "../../context/document/normalise.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import type { ScriptedName } from "../../provider/agent-dir.ts";
import { Gate } from "../../provider/gate.ts";
import type { LogEntry } from "../../provider/log.ts";
import { answer, hold } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

const runsAtOnce = join(import.meta.dirname, "..", "fixtures", "extension", "runs-at-once.ts");

/** A tree with tool nodes off the path, two calls at once, instructions and an event. */
const document = {
  format: "pi-rpcd/context",
  version: 1,
  leafId: "n6",
  nodes: [
    { id: "n0", parentId: null, role: "system", content: "Answer in rhymes.", timestamp: 1 },
    { id: "n1", parentId: "n0", role: "user", content: "What is 2+2, and 3+3?", timestamp: 2 },
    {
      id: "n2",
      parentId: "n1",
      role: "toolCall",
      toolCallId: "c 1|x",
      toolName: "bash",
      arguments: { command: "expr 2 + 2" },
      timestamp: 3,
    },
    {
      id: "n3",
      parentId: "n1",
      role: "tool_call",
      toolCallId: "c2",
      name: "bash",
      params: { command: "expr 3 + 3" },
      timestamp: 3,
    },
    { id: "n4", parentId: "n2", role: "tool", toolCallId: "c 1|x", toolName: "bash", content: "4", timestamp: 4 },
    { id: "n5", parentId: "n3", role: "toolResult", toolCallId: "c2", toolName: "bash", result: "6", timestamp: 5 },
    { id: "n6", parentId: "n1", role: "assistant", content: "4, and 6.", timestamp: 6 },
    { id: "n7", parentId: "n6", role: "event", eventType: "git.push", content: "pushed 3 commits", timestamp: 7 },
  ],
};
const whole = { document, nodeId: "n7" };

type Create = Omit<Params<"session/create">, "cwd">;

async function create(stage: Stage, params: Create): Promise<Result<"session/create">> {
  return await stage.client.call("session/create", { cwd: stage.cwd, ...params });
}

async function prompted(stage: Stage, sessionId: string, text: string): Promise<LogEntry> {
  const { outcome } = await stage.client.call("session/prompt", { sessionId, text, wait: "settled" });
  expect(outcome).toBe("settled");
  const request = stage.provider.requests.at(-1);
  expect(request?.violations).toEqual([]);
  return request as LogEntry;
}

/** The messages that the model gets, without its prompt. */
function conversation(request: LogEntry): unknown[] {
  return request.messages
    .filter(({ role }) => role !== "system")
    .flatMap(({ role, texts, toolCalls, toolResults }) => [
      ...texts.map((text) => [role, text]),
      ...toolCalls.map((call) => ["call", call.name, call.arguments]),
      ...toolResults.map(({ text }) => ["result", text]),
    ]);
}

const past = [
  ["user", "What is 2+2, and 3+3?"],
  ["call", "bash", { command: "expr 2 + 2" }],
  ["call", "bash", { command: "expr 3 + 3" }],
  ["result", "4"],
  ["result", "6"],
  ["assistant", "4, and 6."],
  ["user", "Event: git.push\npushed 3 commits"],
];

const apis: Readonly<Record<ScriptedName, string>> = {
  scripted: "openai-completions",
  "scripted-responses": "openai-responses",
  "scripted-anthropic": "anthropic-messages",
  "scripted-google": "google-generative-ai",
};
const names = Object.keys(apis) as readonly ScriptedName[];

test("every API gets the same past, whether it is in the session's file or is added to each request", async () => {
  await using stage = await startStage();
  for (const name of names) {
    const model = `${name}/model-1`;
    const dryRun = await stage.client.call("context/inspect", { model, context: whole });
    const made = await create(stage, { model, context: whole });
    expect(await stage.client.call("context/inspect", { sessionId: made.sessionId })).toEqual(dryRun);
    expect(made.context).toMatchObject({ mode: "session", nodes: 8, messages: 6, pairs: 2, warnings: [] });
    const { sessionId } = made;
    const stats = await stage.client.call("session/getStats", { sessionId });
    expect(stats).toMatchObject({ tokens: { total: 0 }, cost: 0 });
    const inFile = await prompted(stage, sessionId, "Go on.");
    expect(conversation(inFile)).toEqual([...past, ["user", "Go on."]]);
    expect(inFile.countText("Answer in rhymes.")).toBe(1);
    expect(inFile.countText("prior_instructions>")).toBe(2);
    const ephemeral = await create(stage, { model, context: whole, ephemeral: true });
    expect(ephemeral.context).toMatchObject({ mode: "ephemeral", hash: made.context?.hash, messages: 6 });
    const inRequest = await prompted(stage, ephemeral.sessionId, "Go on.");
    expect(inRequest.messages.slice(1)).toEqual(inFile.messages.slice(1));
    const exported = await Promise.all(
      [sessionId, ephemeral.sessionId].map((id) => stage.client.call("context/export", { sessionId: id })),
    );
    const documents = exported.map(({ document: made }) => made as ContextDocument);
    const target = { api: apis[name], provider: name, id: "model-1", takesImages: false };
    const { items = [] } = normalise(whole.document, target, whole);
    for (const { items: came = [] } of documents) expect(came.slice(0, -2)).toEqual(items);
    for (const id of [sessionId, ephemeral.sessionId]) await stage.client.call("session/close", { sessionId: id });
  }
});

test("a session continues with its context: in another pi, in a fork, in a copy, and in an export", async () => {
  await using stage = await startStage();
  const { client } = stage;
  // No model is named: pi is asked for its own before anything is built.
  const made = await create(stage, { context: whole, name: "a past" });
  const { sessionId } = made;
  expect(made).toMatchObject({ model: { provider: "scripted", id: "model-1" }, name: "a past" });
  expect(conversation(await prompted(stage, sessionId, "One."))).toEqual([...past, ["user", "One."]]);
  await fallAsleep(client, sessionId);
  const later = await prompted(stage, sessionId, "Two.");
  const said = [...past, ["user", "One."], ["assistant", expect.any(String)]];
  expect(conversation(later)).toEqual([...said, ["user", "Two."]]);
  expect(later.countText("Answer in rhymes.")).toBe(1);
  await stage.restart();
  const inspected = await stage.client.call("context/inspect", { sessionId });
  expect(inspected).toMatchObject({ mode: "session", hash: made.context?.hash, counts: { nodes: 8, pairs: 2 } });

  const copy = await create(stage, { model: "scripted-anthropic/model-1", context: { fromSession: { sessionId } } });
  const inCopy = await prompted(stage, copy.sessionId, "Three.");
  expect(inCopy.countText("Answer in rhymes.")).toBe(1);
  const copied = conversation(inCopy);
  const both = [...said, ["user", "Two."], ["assistant", expect.any(String)]];
  expect(copied).toEqual([...both, ["user", "Three."]]);

  const exported = await stage.client.call("context/export", { sessionId });
  const { items } = exported.document as { items: { role: string }[] };
  expect(items.map(({ role }) => role)).toEqual([
    ...["user", "assistant", "toolResult", "toolResult", "assistant", "event"],
    ...["user", "assistant", "user", "assistant"],
  ]);
  const file = await stage.client.call("context/export", { sessionId, output: "file" });
  expect(JSON.parse(readFileSync(file.path ?? "", "utf8"))).toEqual(exported.document);
  const again = await create(stage, { context: { document: exported.document } });
  const repeated = await prompted(stage, again.sessionId, "Three.");
  expect(conversation(repeated)).toEqual(copied);

  const { messages } = await stage.client.call("session/getForkMessages", { sessionId });
  const entryId = messages.at(-1)?.entryId ?? "";
  const forked = await stage.client.call("session/fork", { sessionId, entryId });
  const inFork = await prompted(stage, forked.session.sessionId, "Four.");
  expect(conversation(inFork)).toEqual([...said, ["user", "Four."]]);
  expect(inFork.countText("Answer in rhymes.")).toBe(1);
});

test("a warm child adopts a session with a context", async () => {
  await using stage = await startStage();
  const model = "scripted/model-1";
  for (let i = 0; i < 3; i += 1) {
    const { sessionId } = await create(stage, { model, context: whole });
    expect(conversation(await prompted(stage, sessionId, "Go on."))).toEqual([...past, ["user", "Go on."]]);
    await stage.client.call("session/close", { sessionId });
  }
});

test("an ephemeral session whose pi dies gets its context again, and session/updated reports the loss", async () => {
  await using stage = await startStage();
  const { sessionId, pid } = await create(stage, { context: whole, ephemeral: true });
  await prompted(stage, sessionId, "One.");
  const handle = stage.client.session(sessionId);
  const restored = Promise.withResolvers<void>();
  const events = handle.notifications();
  void (async () => {
    for await (const { params } of events) if ("restored" in params) restored.resolve();
  })();
  process.kill(pid ?? 0, "SIGKILL");
  await expect.poll(async () => (await handle.get()).state).toBe("crashed");
  expect(conversation(await prompted(stage, sessionId, "Two."))).toEqual([...past, ["user", "Two."]]);
  await restored.promise;
  expect((await stage.client.call("context/export", { sessionId })).document).toMatchObject({
    items: expect.arrayContaining([expect.objectContaining({ role: "event", eventType: "git.push" })]),
  });
  const copy = await create(stage, { context: { fromSession: { sessionId } } });
  const inCopy = await prompted(stage, copy.sessionId, "Three.");
  const answered = ["assistant", expect.any(String)];
  expect(conversation(inCopy)).toEqual([...past, ["user", "Two."], answered, ["user", "Three."]]);
  expect(inCopy.countText("Answer in rhymes.")).toBe(1);
});

test("a first prompt that repeats the last message of the context is reported, and a context that is too large is trimmed", async () => {
  await using stage = await startStage();
  mkdirSync(join(stage.root, "documents"));
  const path = join(stage.root, "documents", "long.json");
  const turns = Array.from({ length: 40 }, (_, i) => [
    { role: "user", content: `Question ${i}: ${"word ".repeat(5_000)}`, timestamp: 2 * i },
    { role: "assistant", content: `Answer ${i}.`, timestamp: 2 * i + 1 },
  ]).flat();
  const items = [...turns, { role: "user", content: "And?", timestamp: 99 }];
  writeFileSync(path, JSON.stringify({ format: "pi-rpcd/context", version: 1, items }));
  const { sessionId, context } = await create(stage, { context: { path, until: "through" } });
  expect(context?.dropped.messages).toBeGreaterThan(0);
  expect(context?.tokens.structured).toBeLessThanOrEqual(Math.floor(0.8 * (200_000 - 16_384)));
  const result = await stage.client.call("session/prompt", { sessionId, text: "And?", wait: "settled" });
  expect(result).toMatchObject({ outcome: "settled", warnings: ["duplicate_prompt"] });
  expect((await stage.client.call("context/inspect", { sessionId })).warnings).toEqual(["duplicate_prompt"]);
  // No compaction was paid for.
  expect(stage.provider.requests).toHaveLength(1);
});

test("a pi that is asked for its model makes no request, though an extension starts a run in it", async () => {
  await using stage = await startStage();
  // No model is named, so that another pi with the same extensions is asked for it first.
  const { sessionId } = await create(stage, { ephemeral: true, extensions: [runsAtOnce], context: whole });
  const request = await stage.provider.waitForRequest((made) => made.hasText("I am the first."));
  expect(conversation(request)).toEqual([...past, ["user", "I am the first."]]);
  await stage.client.call("session/waitForIdle", { sessionId });
  expect(stage.provider.requests).toHaveLength(1);
});

test("a session that starts without its context reports this to subscribers and in pi", async () => {
  await using stage = await startStage();
  const { sessionId, contextError } = await create(stage, {
    context: { document: { ...document, leafId: "n99" }, onError: "warn" },
  });
  expect(contextError).toMatchObject({ data: { name: "context_invalid", code: "unknown_node", nodeId: "n99" } });
  const told: string[] = [];
  for await (const { name, params } of stage.client.session(sessionId).notifications({ after: 0 })) {
    if (name === "context/failed") told.push(params.error.message);
    const event = name === "session/event" ? (params.event as Record<string, unknown>) : {};
    if (event["method"] === "notify") told.push(String(event["message"]));
    if (told.length === 2) break;
  }
  expect(told).toEqual([contextError?.message, `The session started without its context: ${contextError?.message}`]);
});

test("during a run a session is exported up to its last complete entry, ephemeral or not", async () => {
  const gates = [new Gate(), new Gate()];
  const script = gates.map((gate) => answer("Half", hold(gate), " and half."));
  await using stage = await startStage({ provider: { script } });
  const texts = async (sessionId: string): Promise<unknown[]> => {
    const { document: exported } = await stage.client.call("context/export", { sessionId });
    const { items } = exported as { items: { role: string; content: { text: string }[] }[] };
    return items.map(({ role, content }) => [role, content.map(({ text }) => text).join("")]);
  };
  for (const [index, ephemeral] of [false, true].entries()) {
    const { sessionId } = await create(stage, { context: whole, ephemeral });
    const before = await texts(sessionId);
    await stage.client.call("session/prompt", { sessionId, text: "Go on." });
    await gates[index]?.reached;
    expect(await texts(sessionId)).toEqual([...before, ["user", "Go on."]]);
    gates[index]?.open();
    await stage.client.call("session/waitForIdle", { sessionId });
    expect(await texts(sessionId)).toEqual([...before, ["user", "Go on."], ["assistant", "Half and half."]]);
    expect(before.slice(0, 5)).toEqual([
      ["user", "What is 2+2, and 3+3?"],
      ["assistant", ""],
      ["toolResult", "4"],
      ["toolResult", "6"],
      ["assistant", "4, and 6."],
    ]);
  }
});

test("after a compaction an export and a copy of an ephemeral session contain the compacted context", async () => {
  await using stage = await startStage();
  const turns = Array.from({ length: 8 }, (_, i) => [
    { role: "user", content: `Before ${i}: ${"word ".repeat(200)}`, timestamp: 2 * i },
    { role: "assistant", content: `Answer ${i}.`, timestamp: 2 * i + 1 },
  ]).flat();
  const held = { format: "pi-rpcd/context", version: 1, items: turns };
  for (const ephemeralAfterCompaction of ["trim", "keep"] as const) {
    const { sessionId } = await create(stage, {
      ephemeral: true,
      context: { document: held, maxTokens: 4_000, ephemeralAfterCompaction },
    });
    for (const nth of [1, 2]) await prompted(stage, sessionId, `Long ${nth}. ${"w ".repeat(60_000)}`);
    await stage.client.call("session/compact", { sessionId });
    const copy = await create(stage, { context: { fromSession: { sessionId } } });
    const exported = await stage.client.call("context/export", { sessionId });
    const inSession = conversation(await prompted(stage, sessionId, "Go on."));
    const own = JSON.stringify(inSession);
    expect(own).toContain("Before 7");
    expect(own.includes("Before 0")).toBe(ephemeralAfterCompaction === "keep");
    expect(conversation(await prompted(stage, copy.sessionId, "Go on."))).toEqual(inSession);
    for (let nth = 0; nth < 8; nth += 1) {
      const isThere = own.includes(`Before ${nth}:`);
      expect(JSON.stringify(exported.document).includes(`Before ${nth}:`)).toBe(isThere);
    }
    for (const id of [sessionId, copy.sessionId]) await stage.client.call("session/close", { sessionId: id });
  }
});
