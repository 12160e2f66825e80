import { existsSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { connect, type SessionHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, hold } from "../../../provider/reply.ts";
import { leasePath } from "../../../server/pi/lease.ts";
import { fallAsleep } from "../../helpers/asleep.ts";
import { startForeignPi } from "../../helpers/foreign-pi.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

interface ForkMessage {
  readonly entryId: string;
  readonly text: string;
}

async function userMessages(session: SessionHandle): Promise<ForkMessage[]> {
  const data = (await session.command({ type: "get_fork_messages" })) as { messages: ForkMessage[] };
  return data.messages;
}

const headerOf = (file: string): Record<string, unknown> =>
  JSON.parse(readFileSync(file, "utf8").split("\n", 1)[0] ?? "");

async function idle(session: SessionHandle): Promise<void> {
  await expect.poll(async () => (await session.get()).state).toBe("idle");
}

function carried(stage: Stage, ...texts: readonly string[]): (number | undefined)[] {
  const last = stage.provider.requests.at(-1);
  return texts.map((text) => last?.countText(text, { roles: ["user"] }));
}

test("fork and clone create sessions that take over the pi; everything of the old session stays with it", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  for (const text of ["one", "two", "three"]) {
    await session.promptAndWait(text);
    await idle(session);
  }
  const before = await session.get();
  await using told = await Notifications.of(stage.stateDir, session.id);
  const held = session.push({ customType: "n", content: "held by the old one", deliverAs: "nextTurn" });
  await expect.poll(async () => (await held.get()).state).toBe("held");
  const third = (await userMessages(session)).find(({ text }) => text === "three");
  const { session: fork, text } = await session.fork(third?.entryId ?? "");
  expect(text).toBe("three");
  const { file, pid, state, model } = await fork.get();
  expect([fork.id, pid, state, model]).toEqual([headerOf(file)["id"], before.pid, "idle", before.model]);
  expect(headerOf(file)).toMatchObject({ parentSession: before.file });
  expect(existsSync(leasePath(file))).toBe(true);
  await expect.poll(() => existsSync(leasePath(before.file))).toBe(false);
  expect(await session.get()).toMatchObject({ state: "hibernated", file: before.file });
  const { params } = await told.until(({ name }) => name === "session/replaced");
  expect(params).toMatchObject({ from: session.id, to: fork.id });

  await fork.promptAndWait("in the fork");
  expect(carried(stage, "one", "two", "three", "held by the old one", "in the fork")).toEqual([1, 1, 0, 0, 1]);
  await idle(fork);
  await session.promptAndWait("in the old one");
  expect((await held.answered).state).toBe("answered");
  expect(carried(stage, "two", "three", "held by the old one", "in the fork")).toEqual([1, 1, 1, 0]);
  await idle(session);

  const clone = await fork.clone();
  await clone.promptAndWait("in the clone");
  expect(carried(stage, "two", "in the fork", "in the clone")).toEqual([1, 1, 1]);
  await idle(clone);
  // Before the first message the transcript is empty, but the new session has a file.
  const [first] = await userMessages(clone);
  const { session: empty } = await clone.fork(first?.entryId ?? "");
  expect(headerOf((await empty.get()).file)["id"]).toBe(empty.id);
  await empty.promptAndWait("from the beginning");
  expect(carried(stage, "one", "from the beginning")).toEqual([0, 1]);
  for (const one of [session, fork, clone, empty]) {
    expect(headerOf((await one.get()).file)["id"]).toBe(one.id);
  }
  expect(told.named("session/foreignWrite")).toEqual([]);
  const files = await Promise.all([fork, clone, empty].map(async (one) => (await one.get()).file));
  await stage.restart();
  for (const one of files) expect(existsSync(leasePath(one))).toBe(false);
  await stage.client.session(fork.id).promptAndWait("after the restart");
  expect(carried(stage, "two", "in the fork", "in the clone")).toEqual([1, 1, 0]);
});

const forbidding = `
export default function (pi) {
  pi.on("session_before_fork", () => ({ cancel: true }));
}
`;

test("an opened session takes the pi of the one its caller comes from, unless others need it or its options differ", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: ["one", "two", answer("three ", hold(gate), "more")] } });
  const { client, cwd } = stage;
  const create = (options: { readonly tools?: string[] } = {}) =>
    client.createSession({ cwd, model: "scripted/model-1", ...options });
  const first = await create();
  await first.promptAndWait("in the first");
  await idle(first);
  const { file, pid } = await first.get();
  await first.close();
  const second = await create();
  await second.promptAndWait("in the second");
  await idle(second);
  const { pid: pidOfSecond } = await second.get();
  const open = (sessionId: string, from: string, more: object = {}) =>
    client.call("session/open", { sessionId, from, ...more });
  expect(pidOfSecond).not.toBe(pid);

  expect(await open(first.id, second.id)).toMatchObject({ file, pid: pidOfSecond, state: "idle" });
  expect(await second.get()).toMatchObject({ state: "hibernated" });
  expect(existsSync(leasePath(file))).toBe(true);
  // Back again, to a session that is open without a pi; a run is aborted first.
  const run = first.promptAndWait("a run");
  run.catch(() => {});
  await gate.reached;
  expect(await open(second.id, first.id)).toMatchObject({ pid: pidOfSecond, state: "idle" });
  expect(await first.get()).toMatchObject({ state: "hibernated" });
  await expect(run).rejects.toThrow();

  const other = await create({ tools: ["read"] });
  expect(await open(first.id, other.id)).toMatchObject({ state: "hibernated" });
  const restricted = await open(first.id, second.id, { options: { tools: ["read"] } });
  expect(restricted).toMatchObject({ state: "idle" });
  expect(restricted.pid).not.toBe(pidOfSecond);
  await fallAsleep(client, first.id);
  await using follower = await connect({ stateDir: stage.stateDir });
  await follower.call("session/subscribe", { sessionId: second.id });
  expect(await open(first.id, second.id)).toMatchObject({ state: "hibernated" });
  expect(await second.get()).toMatchObject({ pid: pidOfSecond, state: "idle" });
});

test("one of several callers at once gets the session with its pi, and the others get the same session", async () => {
  await using stage = await startStage();
  const create = async () => {
    const session = await stage.session();
    await session.promptAndWait("Hi.");
    await idle(session);
    return session;
  };
  const [to, one, two] = [await create(), await create(), await create()];
  const pids = [(await one.get()).pid, (await two.get()).pid];
  await fallAsleep(stage.client, to.id);
  const opened = await Promise.all(
    [one, one, two].map(({ id: from }) => stage.client.call("session/open", { sessionId: to.id, from })),
  );
  expect(new Set(opened.map(({ sessionId, pid }) => `${sessionId} ${pid}`)).size).toBe(1);
  expect(pids).toContain(opened[0]?.pid);
  // The pi of the other one stays with it.
  const kept = [await one.get(), await two.get()].filter(({ state }) => state === "idle");
  expect(kept).toHaveLength(1);
  expect(pids).toContain(kept[0]?.pid);
});

test("no pi is started to go on: a session that cannot start one is left for another", async () => {
  await using stage = await startStage();
  const create = async () => {
    const params = { cwd: stage.cwd, model: "scripted/model-1", onForeignWrite: "refuse" } as const;
    const session = await stage.client.createSession(params);
    await session.promptAndWait("Hi.");
    await idle(session);
    await fallAsleep(stage.client, session.id);
    return session;
  };
  const [to, from] = [await create(), await create()];
  const { file, generation } = await from.get();
  writeFileSync(file, '{"type":"label","id":"foreign","parentId":null}\n', { flag: "a" });
  await stage.client.call("session/open", { sessionId: to.id, from: from.id });
  expect(await to.promptAndWait("Hi.")).toContain("Hi.");
  expect(await from.get()).toMatchObject({ generation, state: "hibernated" });
});

test("a session that gets a pi of its own while another's goes on to it is opened with that one", async () => {
  await using stage = await startStage();
  const [to, from] = [await stage.session(), await stage.session()];
  await to.promptAndWait("Hi.");
  await idle(to);
  await fallAsleep(stage.client, to.id);
  const open = stage.client.call("session/open", { sessionId: to.id, from: from.id });
  const [said, opened] = await Promise.all([to.promptAndWait("At once."), open]);
  expect(said).toContain("At once.");
  expect(opened.sessionId).toBe(to.id);
});

test("no pi goes on to a file with a cycle, to one that another program has written, or to other policies", async () => {
  await using stage = await startStage();
  const { client, cwd } = stage;
  const create = async () => {
    const session = await client.createSession({ cwd, model: "scripted/model-1", onForeignWrite: "refuse" });
    await session.promptAndWait("Hi.");
    await idle(session);
    return session;
  };
  const [from, other] = [await create(), await create()];
  const { pid } = await from.get();
  const { file } = await other.get();
  const entry = (id: string, parentId: string | null) =>
    `${JSON.stringify({ type: "message", id, parentId, message: { role: "user", content: "Hi." } })}\n`;
  const header = (id: string) =>
    `${JSON.stringify({ type: "session", version: 3, id, timestamp: new Date(0).toISOString(), cwd })}\n`;
  const at = (name: string) => join(dirname(file), `0_${name}.jsonl`);
  writeFileSync(at("cycle"), header("cycle") + entry("a", "b") + entry("b", "a"));
  const damaged = { kind: "session_file_unusable", data: { reason: "entries_damaged" } };
  await expect(client.call("session/open", { file: at("cycle"), from: from.id })).rejects.toMatchObject(damaged);
  expect(await from.get()).toMatchObject({ pid, state: "idle" });

  await fallAsleep(client, other.id);
  writeFileSync(file, entry("foreign", null), { flag: "a" });
  const opened = await client.call("session/open", { sessionId: other.id, from: from.id });
  expect(opened).toMatchObject({ state: "hibernated" });
  await expect(other.promptAndWait("Hi.")).rejects.toMatchObject({ kind: "foreign_write" });

  writeFileSync(at("policy"), header("policy") + entry("a", null));
  const policy = { file: at("policy"), from: from.id, onForeignWrite: "reload" } as const;
  expect((await client.call("session/open", policy)).pid).not.toBe(pid);
  expect(await from.get()).toMatchObject({ pid, state: "idle" });
});

test("a fork that is refused changes nothing", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [answer("One."), answer(hold(gate), "Two.")] } });
  const passing = await stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", ephemeral: true });
  for (const attempt of [passing.clone(), passing.fork("nonsense"), passing.reload()]) {
    await expect(attempt).rejects.toMatchObject({ kind: "session_file_unusable", data: { reason: "ephemeral" } });
  }
  await passing.close();
  const path = join(stage.root, "forbidding.ts");
  writeFileSync(path, forbidding);
  const session = await stage.session();
  await session.promptAndWait("one");
  await idle(session);
  const before = await session.get();
  await expect(session.fork("nonsense")).rejects.toMatchObject({ kind: "refused_by_pi" });
  const running = session.promptAndWait("two");
  await gate.reached;
  await expect(session.clone()).rejects.toMatchObject({ kind: "session_busy" });
  gate.open();
  await running;
  await idle(session);
  writeFileSync(join(stage.agentDir.path, "settings.json"), JSON.stringify({ extensions: [path] }));
  await stage.restart();
  const again = stage.client.session(session.id);
  await expect(again.clone()).rejects.toMatchObject({
    kind: "refused_by_pi",
    data: { reason: "cancelled_by_extension" },
  });
  expect(await again.get()).toMatchObject({ state: "idle", file: before.file });
  expect(await stage.client.listSessions()).toHaveLength(1);
});

test("with `fork` a session's own branch continues in a new session after another program has written", async () => {
  await using stage = await startStage();
  const session = await stage.client.createSession({
    cwd: stage.cwd,
    model: "scripted/model-1",
    onForeignWrite: "fork",
  });
  await session.promptAndWait("one");
  await idle(session);
  {
    await using terminal = await startForeignPi(stage, (await session.get()).file);
    await terminal.prompt("from the terminal");
  }
  const refusal = await session.prompt("two").catch((error: { kind: string; data: { to: string } }) => error);
  expect(refusal).toMatchObject({ kind: "foreign_write", data: { to: expect.any(String) } });
  const own = stage.client.session((refusal as { data: { to: string } }).data.to);
  await own.promptAndWait("two");
  expect(carried(stage, "one", "from the terminal", "two")).toEqual([1, 0, 1]);
  await session.promptAndWait("three");
  expect(carried(stage, "one", "from the terminal", "two", "three")).toEqual([1, 1, 0, 1]);
});

test("a session created by a terminal pi is opened by its id or its file, continues, and is deleted only when asked", async () => {
  await using stage = await startStage();
  const made = await stage.session();
  await made.promptAndWait("one");
  const { file } = await made.get();
  await made.close();
  {
    await using terminal = await startForeignPi(stage, file);
    await terminal.prompt("from the terminal");
  }
  const listed = await stage.client.call("session/list", { stored: true, cwd: stage.cwd });
  expect(listed).toMatchObject({
    sessions: [],
    stored: { sessions: [{ sessionId: made.id, file, cwd: stage.cwd, firstMessage: "one" }] },
  });
  const elsewhere = await stage.client.call("session/list", { stored: true, cwd: stage.root });
  expect(elsewhere.stored).toEqual({ sessions: [] });
  const [byId, byFile] = await Promise.all([
    stage.client.openSession({ sessionId: made.id }),
    stage.client.openSession({ file }),
  ]);
  expect([byId.id, byFile.id]).toEqual([made.id, made.id]);
  expect(await stage.client.listSessions()).toHaveLength(1);
  expect((await stage.client.call("session/list", { stored: true })).stored).toEqual({ sessions: [] });
  const info = await byId.get();
  expect(info).toMatchObject({ state: "idle", file: realpathSync(file), cwd: realpathSync(stage.cwd), generation: 1 });
  await byId.promptAndWait("two");
  expect(carried(stage, "one", "from the terminal", "two")).toEqual([1, 1, 1]);
  expect((await stage.client.openSession({ sessionId: made.id })).id).toBe(made.id);

  await byId.close();
  expect(existsSync(file)).toBe(true);
  const again = await stage.client.openSession({ file });
  await expect(stage.client.call("session/delete", { sessionId: again.id } as never)).rejects.toMatchObject({
    kind: "invalid_params",
  });
  await again.delete();
  expect([existsSync(file), existsSync(leasePath(file))]).toEqual([false, false]);
  await expect(again.get()).rejects.toMatchObject({ kind: "session_not_found" });
});

test("a file that is not a pi session is refused with the reason", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.promptAndWait("one");
  const { file } = await session.get();
  const directory = dirname(file);
  await session.close();
  const reasonOf = async (path: string): Promise<unknown> =>
    await stage.client.openSession({ file: path }).then(
      () => "opened",
      ({ kind, data }: { kind: string; data: { reason?: string } }) => data.reason ?? kind,
    );
  const written = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  };
  const header = (fields: object): string => `${JSON.stringify({ ...headerOf(file), ...fields })}\n`;
  const outside = join(stage.root, "outside.jsonl");
  writeFileSync(outside, readFileSync(file));
  const link = join(directory, "link.jsonl");
  symlinkSync(outside, link);
  expect(await reasonOf(outside)).toBe("outside");
  expect(await reasonOf(link)).toBe("outside");
  expect(await reasonOf("relative.jsonl")).toBe("not_absolute");
  expect(await reasonOf(join(directory, "none.jsonl"))).toBe("missing");
  expect(await reasonOf(join(directory, "..", "..", "settings.json"))).toBe("outside");
  expect(await reasonOf(written("empty.jsonl", ""))).toBe("header_damaged");
  expect(await reasonOf(written("torn.jsonl", '{"type":"sess'))).toBe("header_damaged");
  expect(await reasonOf(written("id.jsonl", header({ id: "../x" })))).toBe("header_damaged");
  expect(await reasonOf(written("version.jsonl", header({ version: 99 })))).toBe("version_unknown");
  expect(await reasonOf(written("cwd.jsonl", header({ id: "gone", cwd: join(stage.root, "gone") })))).toBe("missing");
  await expect(stage.client.openSession({ sessionId: "nobody" })).rejects.toMatchObject({ kind: "session_not_found" });
  await expect(stage.client.openSession({})).rejects.toMatchObject({ kind: "invalid_params" });
  const opened = await stage.client.openSession({ file });
  expect(await reasonOf(written("copy.jsonl", readFileSync(file, "utf8")))).toBe("copied");
  expect(opened.id).toBe(session.id);
});
