import { expect, test } from "vitest";
import type { SessionHandle, WireError } from "../../client/index.ts";
import { answer, call, status } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { startForeignPi } from "../helpers/foreign-pi.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

const fromFile = [
  "session/getState",
  "session/getMessages",
  "session/getEntries",
  "session/getTree",
  "session/getForkMessages",
  "session/getLastText",
  "session/getStats",
  "session/listLabels",
] as const;
const fromPi = [
  "session/getCommands",
  "session/getThinkingLevels",
  "optimisation/inspect",
  "cache/report",
  "pruning/inspect",
  "pruning/stats",
] as const;

type Answers = Readonly<Record<string, object>>;

async function look(
  { client }: Stage,
  sessionId: string,
  methods: readonly (typeof fromFile | typeof fromPi)[number][],
) {
  const answers: Record<string, object> = {};
  for (const method of methods) answers[method] = await client.call(method, { sessionId });
  return answers as Answers;
}

/** The answers as pi's own, where all of them say that they are not. */
function uncached(answers: Answers): Answers {
  const bare = Object.entries(answers).map(([method, result]) => {
    const { cached, cachedAt, ...rest } = result as { cached?: boolean; cachedAt?: number };
    expect([method, cached, cachedAt]).toEqual([method, true, expect.any(Number)]);
    return [method, rest];
  });
  return Object.fromEntries(bare) as Answers;
}

async function stateOf(session: SessionHandle): Promise<readonly unknown[]> {
  const { state, generation } = await session.get();
  return [state, generation];
}

test("questions about a hibernated session are answered as its pi would, and start none", async () => {
  await using stage = await startStage({ agent: { settings: { compaction: { keepRecentTokens: 100 } } } });
  const { client, cwd, provider } = stage;
  const session = await client.createSession({
    cwd,
    model: "scripted/model-1",
    optimisation: { cache: { enabled: true, audit: true } },
    pruning: { enabled: true },
  });
  const { id } = session;
  // Entries of many kinds: a call with its result, a push, a label, a branch that was left, a failed request, a compaction.
  provider.add(answer(call("bash", { command: "echo out" })), answer("first"));
  await session.promptAndWait("one");
  const { entries } = await client.call("session/getEntries", { sessionId: id });
  const first = entries.at(-1)?.id ?? "";
  await client.call("session/setLabel", { sessionId: id, entryId: first, label: "a label" });
  provider.add(answer("left"));
  await session.promptAndWait("two");
  await session.navigate(first);
  provider.add(status(500), answer("retried"));
  await session.promptAndWait("three ".repeat(4_000));
  await session.push({ customType: "n", content: "pushed", deliverAs: "nextTurn" }).accepted;
  await session.promptAndWait("four");
  provider.add(answer("a summary"));
  await client.call("session/compact", { sessionId: id });
  await session.promptAndWait("five");

  const awake = await look(stage, id, [...fromFile, ...fromPi]);
  await fallAsleep(client, id);
  const asleep = uncached(await look(stage, id, [...fromFile, ...fromPi]));
  const since = await client.call("session/getEntries", { sessionId: id, since: first });
  expect(since.entries[0]).toMatchObject({ type: "label", parentId: first });
  await expect(client.call("session/getEntries", { sessionId: id, since: "none" })).rejects.toMatchObject({
    kind: "refused_by_pi",
    data: { piError: "Entry not found: none" },
  });
  expect(await stateOf(session)).toEqual(["hibernated", 1]);
  expect(asleep).toEqual(awake);

  // Without what pi said, the file has the same, but for what only pi knows.
  await stage.restart();
  const later = stage.client.session(id);
  const read = uncached(await look(stage, id, fromFile));
  expect(await stateOf(later)).toEqual(["hibernated", 1]);
  const { "session/getState": state = {}, "session/getStats": stats = {}, ...whole } = read;
  expect(awake).toMatchObject(whole);
  expect(awake["session/getStats"]).toMatchObject(stats);
  const { model, ...known } = state as { model: object };
  expect(awake["session/getState"]).toMatchObject(known);
  expect(model).toEqual({ provider: "scripted", id: "model-1" });

  // What a terminal pi appends is in the answers.
  await using terminal = await startForeignPi(stage, (await later.get()).file);
  provider.add(answer("from the terminal"));
  await terminal.prompt("six");
  expect(await stage.client.call("session/getLastText", { sessionId: id })).toMatchObject({
    text: "from the terminal",
  });
  expect(await stateOf(later)).toEqual(["hibernated", 1]);

  // A write still starts a pi, which has read the same file.
  await later.command({ type: "set_session_name", name: "woken" });
  expect(await stateOf(later)).toEqual(["idle", 2]);
});

test("answers that the file or the configuration has outdated are not given again", async () => {
  await using stage = await startStage();
  const { client } = stage;
  const session = await client.createSession({ cwd: stage.cwd, model: "scripted/model-1", pruning: { enabled: true } });
  const sessionId = session.id;
  await session.promptAndWait("one");
  await fallAsleep(client, sessionId);
  {
    await using terminal = await startForeignPi(stage, (await session.get()).file);
    await terminal.prompt("two");
  }
  const { messageCount } = await client.call("session/getState", { sessionId });
  expect(await stateOf(session)).toEqual(["hibernated", 1]);
  expect(await client.call("pruning/inspect", { sessionId })).not.toHaveProperty("cached");
  expect(await stateOf(session)).toEqual(["idle", 2]);
  const woken = await client.call("session/getState", { sessionId });
  expect(woken).toMatchObject({ messageCount });
  expect(woken).not.toHaveProperty("cached");

  await fallAsleep(client, sessionId);
  expect(await client.call("pruning/inspect", { sessionId })).toMatchObject({ cached: true, mode: "automatic" });
  await client.call("pruning/configure", { sessionId, pruning: { enabled: false } });
  await expect(client.call("pruning/inspect", { sessionId })).rejects.toSatisfy(
    ({ kind }: WireError) => kind === "pruning_disabled",
  );
  expect(await stateOf(session)).toEqual(["hibernated", 2]);
});
