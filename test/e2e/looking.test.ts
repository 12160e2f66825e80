import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionHandle, WireError } from "../../client/index.ts";
import { type MethodRow, takesCached } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import { answer, call, status } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { startForeignPi } from "../helpers/foreign-pi.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

/** The reading methods of the table that start no pi, grouped by the source of their answers. */
const questions = (from: "file" | "cached") =>
  (Object.keys(methods) as MethodName[]).filter((method) => (methods[method] as MethodRow).asleep === from);
const fromFile = questions("file");
const fromPi = questions("cached");
/** The methods that take `cached`, and answer from what pi has said alone. */
const remembered = (Object.keys(methods) as MethodName[]).filter(
  (method) => takesCached(methods[method]) && method !== "session/getStats",
);

type Answers = Readonly<Record<string, object>>;

async function look({ client }: Stage, sessionId: string, asked: readonly MethodName[]): Promise<Answers> {
  const answers: Record<string, object> = {};
  for (const method of asked) answers[method] = (await client.call(method, { sessionId } as never)) as object;
  return answers;
}

/** The names of the refusals, or `answered`. */
async function refusals({ client }: Stage, sessionId: string, asked: readonly MethodName[]) {
  const answers = asked.map((method) =>
    client.call(method, { sessionId } as never).then(
      () => "answered",
      ({ kind, data }: WireError) => [kind, data["reason"]],
    ),
  );
  return await Promise.all(answers);
}

/** The answers as pi gives them; each must be marked as cached. */
function uncached(answers: Answers): Answers {
  const bare = Object.entries(answers).map(([method, result]) => {
    const { cached, cachedAt, outdated, ...rest } = result as { cached?: true; cachedAt?: number; outdated?: true };
    expect([method, cached, cachedAt, outdated]).toEqual([method, true, expect.any(Number), undefined]);
    return [method, rest];
  });
  return Object.fromEntries(bare) as Answers;
}

async function stateOf(session: SessionHandle): Promise<readonly unknown[]> {
  const { state, generation, pid } = await session.get();
  return pid === undefined ? [state, generation] : [state, generation, pid];
}

const outdated = (answers: Answers) =>
  Object.entries(answers).flatMap(([method, answer]) => ("outdated" in answer ? method : []));

test("reading methods answer for a hibernated session as its pi would, and start none", async () => {
  await using stage = await startStage({ agent: { settings: { compaction: { keepRecentTokens: 100 } } } });
  const { client, cwd, provider } = stage;
  const session = await client.createSession({
    cwd,
    model: "scripted/model-1",
    optimisation: { cache: { enabled: true, audit: true } },
    pruning: { enabled: true },
  });
  const { id } = session;
  // Entries of many kinds: a call with its result, a push, a label, an abandoned branch, a failed request, a
  // compaction.
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

  // A later daemon gives the same answers.
  await stage.restart();
  const later = stage.client.session(id);
  expect(uncached(await look(stage, id, [...fromFile, ...fromPi]))).toEqual(awake);
  expect(await stateOf(later)).toEqual(["hibernated", 1]);

  // When the file may have changed, the answers are the same except for facts that only pi has.
  const { file } = await later.get();
  utimesSync(file, new Date(), new Date());
  const read = uncached(await look(stage, id, fromFile));
  expect(outdated(await look(stage, id, fromPi))).toEqual(fromPi);
  expect(await stateOf(later)).toEqual(["hibernated", 1]);
  const { "session/getState": state = {}, "session/getStats": stats = {}, ...whole } = read;
  expect(awake).toMatchObject(whole);
  expect(awake["session/getStats"]).toMatchObject(stats);
  const { model, ...known } = state as { model: object };
  expect(awake["session/getState"]).toMatchObject(known);
  expect(model).toEqual({ provider: "scripted", id: "model-1" });

  // Entries appended by a terminal pi appear in the answers.
  await using terminal = await startForeignPi(stage, file);
  provider.add(answer("from the terminal"));
  await terminal.prompt("six");
  expect(await stage.client.call("session/getLastText", { sessionId: id })).toMatchObject({
    text: "from the terminal",
  });
  expect(await stateOf(later)).toEqual(["hibernated", 1]);

  // A write still starts a pi, which has read the same file.
  await later.command({ type: "set_session_name", name: "woken" });
  expect(await stateOf(later)).toEqual(["idle", 2, expect.any(Number)]);
});

test("no reading method starts a pi, however the last one ended", async () => {
  await using stage = await startStage();
  const options = {
    model: "scripted/model-1",
    optimisation: { cache: { enabled: true, audit: true } },
    pruning: { enabled: true },
  };
  const session = await stage.client.createSession({ cwd: stage.cwd, ...options });
  const sessionId = session.id;
  await session.promptAndWait("one");
  const awake = await look(stage, sessionId, fromPi);
  const crash = async (crashed: SessionHandle): Promise<void> => {
    process.kill((await crashed.get()).pid ?? Number.NaN, "SIGKILL");
    await expect.poll(async () => (await crashed.get()).state).toBe("crashed");
  };

  // After a crash the answers that pi gave to clients are known.
  await crash(session);
  expect(uncached(await look(stage, sessionId, [...fromFile, ...fromPi]))).toMatchObject(awake);
  expect(await stateOf(session)).toEqual(["crashed", 1]);

  // A daemon that ends asks its idle pi first.
  await session.promptAndWait("two");
  const { messages: forkPoints } = await stage.client.call("session/getForkMessages", { sessionId });
  const more = await look(stage, sessionId, [...fromFile, ...fromPi]);
  await stage.restart();
  const later = stage.client.session(sessionId);
  expect(uncached(await look(stage, sessionId, [...fromFile, ...fromPi]))).toEqual(more);
  expect(await stateOf(later)).toEqual(["hibernated", 2]);

  // Another program's write makes pi's answers outdated; answers then come from the file.
  {
    await using terminal = await startForeignPi(stage, (await later.get()).file);
    await terminal.prompt("three");
  }
  expect(outdated(await look(stage, sessionId, [...fromFile, ...fromPi]))).toEqual(fromPi);
  expect(await stateOf(later)).toEqual(["hibernated", 2]);

  // A fork has none of its origin's answers.
  const [{ entryId } = { entryId: "" }] = forkPoints;
  const { session: made } = await stage.client.call("session/fork", { sessionId, entryId });
  const fork = stage.client.session(made.sessionId);
  await crash(fork);
  const { generation } = await fork.get();
  expect(await refusals(stage, fork.id, fromPi)).toEqual(fromPi.map(() => ["session_asleep", "not_known"]));
  expect(await refusals(stage, fork.id, fromFile)).toEqual(fromFile.map(() => "answered"));
  expect(await stateOf(fork)).toEqual(["crashed", generation]);

  // A configuration that disables a part refuses its reading methods, also without a pi.
  await stage.client.call("pruning/configure", { sessionId, pruning: { enabled: false } });
  expect(await refusals(stage, sessionId, ["pruning/inspect", "pruning/stats"])).toEqual([
    ["pruning_disabled", "disabled"],
    ["pruning_disabled", "disabled"],
  ]);
  // A file that the daemon cannot read instead of pi, and a missing one.
  const { file } = await later.get();
  writeFileSync(file, readFileSync(file, "utf8").replace('"version":3', '"version":2'));
  const lastKnown: readonly string[] = ["session/getState", "session/getStats"];
  expect(await refusals(stage, sessionId, fromFile)).toEqual(
    fromFile.map((method) => (lastKnown.includes(method) ? "answered" : ["session_asleep", "file_older_form"])),
  );
  rmSync(file);
  expect(await refusals(stage, sessionId, fromFile)).toEqual(fromFile.map(() => ["session_file_unusable", "missing"]));
  expect(await stateOf(later)).toEqual(["hibernated", 3]);
});

test("with cached: true no pi is asked, started or waited for, in any state of the session", async () => {
  await using stage = await startStage();
  const { client, cwd } = stage;
  const options = {
    cwd,
    model: "scripted/model-1",
    optimisation: { cache: { enabled: true, audit: true } },
    pruning: { enabled: true },
  };
  const session = await client.createSession(options);
  const { id: sessionId } = session;
  const known = async (method: MethodName): Promise<readonly [string, unknown]> =>
    await stage.client.call(method, { sessionId, cached: true } as never).then(
      (result) => [method, result] as const,
      ({ kind, data }: WireError) => [method, [kind, data["reason"]]] as const,
    );
  const knownOf = async (asked: readonly MethodName[]) => Object.fromEntries(await Promise.all(asked.map(known)));
  const absent = Object.fromEntries(remembered.map((method) => [method, ["answer_unknown", "not_known"]]));

  // Nobody has asked yet. The file has the statistics.
  await session.promptAndWait("one");
  expect(await knownOf(remembered)).toEqual(absent);
  expect(await knownOf(["session/getStats"])).toMatchObject({
    "session/getStats": { userMessages: 1, assistantMessages: 1, cached: true },
  });
  await expect(client.call("model/list", { cached: true })).rejects.toMatchObject({ kind: "answer_unknown" });
  await expect(client.call("model/list", { cached: true, refresh: true })).rejects.toMatchObject({
    kind: "invalid_params",
  });

  // A stopped pi answers nobody.
  const asked: readonly MethodName[] = [...remembered, "session/getStats"];
  const fresh = await look(stage, sessionId, asked);
  const { pid = Number.NaN } = await session.get();
  process.kill(pid, "SIGSTOP");
  try {
    expect(uncached((await knownOf(asked)) as Answers)).toEqual(fresh);
  } finally {
    process.kill(pid, "SIGCONT");
  }

  // The transcript goes on: what was known says so, with its age.
  const before = Date.now();
  await session.promptAndWait("two");
  const old = (await knownOf(asked)) as Answers;
  expect(outdated(old)).toEqual(remembered);
  for (const method of remembered) {
    const { cachedAt } = old[method] as { readonly cachedAt: number };
    expect(cachedAt).toBeLessThanOrEqual(before);
  }
  expect(old["session/getStats"]).toMatchObject({ userMessages: 2, cached: true });

  // Asleep: the same answers with and without the param, and nothing that is a change.
  await fallAsleep(client, sessionId);
  const calls = join(stage.root, "daemon.calls.log");
  const changes = (): string => (existsSync(calls) ? readFileSync(calls, "utf8") : "");
  const made = changes();
  const withParam = (await knownOf(asked)) as Answers;
  const { "model/list": models = {}, ...others } = withParam;
  expect(await look(stage, sessionId, Object.keys(others) as MethodName[])).toEqual(others);
  expect([outdated(others), outdated({ models })]).toEqual([[], ["models"]]);
  await stage.restart();
  const later = (await knownOf(asked)) as Answers;
  expect(later).toEqual(withParam);
  expect(await stateOf(stage.client.session(sessionId))).toEqual(["hibernated", 1]);
  expect(changes()).toBe(made);

  // What is only in its pi's memory is remembered by nobody else.
  const { sessionId: ephemeral } = await stage.client.call("session/create", { ...options, ephemeral: true });
  await stage.client.call("session/getCommands", { sessionId: ephemeral });
  await expect(stage.client.call("session/getCommands", { sessionId: ephemeral, cached: true })).rejects.toMatchObject({
    kind: "answer_unknown",
  });
});
