import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold, status, thinking } from "../../../../provider/reply.ts";
import { patience } from "../../../helpers/patience.ts";
import { openScene } from "./scene.ts";

const start = { type: "start" };

test("a client that replays the history has what one has that was told live", async () => {
  const gate = new Gate();
  await using scene = await openScene(
    [
      answer(thinking("Hm. "), "I look. ", call("bash", { command: "echo out; exit 3" }), "and ", call("ls", {})),
      answer(
        call("edit", { path: "a.txt", edits: [{ oldText: "one", newText: "1" }] }),
        call("write", { path: "b", content: "b" }),
      ),
      answer("I thi", hold(gate), "nk.", call("read", { path: "a.txt" })),
      answer("Both."),
      answer("Pushed."),
      status(400, { message: "the words of the provider" }),
      answer("A summary."),
      answer("The turn."),
      answer("Last."),
    ],
    { settings: { compaction: { keepRecentTokens: 1 } } },
  );
  writeFileSync(join(scene.cwd, "a.txt"), "one\n");
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.prompt(sessionId, "Go.");
  await client.until(() => client.text(sessionId).endsWith("I thi"));
  const steered = client.prompt(sessionId, "And this.");
  const session = scene.stage.client.session(sessionId);
  await expect.poll(async () => (await session.getQueue()).steering.length, patience).toBe(1);
  gate.open();
  await steered;
  await client.until(() => client.states(sessionId).at(-1)?.state === "idle");
  const push = session.push({ customType: "note", content: "Note this." });
  await push.answered;
  await session.waitForIdle();
  await client.until(() => client.states(sessionId).at(-1)?.state === "idle");
  expect(await client.run(sessionId, "Fail.")).toMatchObject({ stopReason: "error" });
  await session.compact();
  expect(await client.run(sessionId, "Last.")).toMatchObject({ stopReason: "end_turn" });
  const live = client.view(sessionId);

  const other = await scene.client();
  const attached = await other.call("session/resume", { sessionId, cwd: scene.cwd, replayFrom: start });
  expect(attached.configOptions).toHaveLength(2);
  expect(other.view(sessionId).comparable).toEqual(live.comparable);
  expect(other.view(sessionId).title).toBe(live.title);
  expect(other.states(sessionId)).toEqual([{ sessionUpdate: "state_update", state: "idle" }]);
  // Once more on the same connection: what the client has is replaced.
  const { comparable } = other.view(sessionId);
  await other.call("session/resume", { sessionId, cwd: scene.cwd, replayFrom: start });
  const isCustom = (each: unknown): boolean => JSON.stringify(each).includes("Note this.");
  expect(other.view(sessionId).comparable.filter((each) => !isCustom(each))).toEqual(
    comparable.filter((each) => !isCustom(each)),
  );
});

test("a client that attaches in a run goes on from what it was told, with or without the history", async () => {
  const gate = new Gate();
  await using scene = await openScene([
    answer("I look. ", call("bash", { command: "echo hello" })),
    answer("I thi", hold(gate), "nk."),
    answer("More."),
  ]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  const { messageId } = await client.prompt(sessionId, "Think.");
  await client.until(() => client.text(sessionId).endsWith("I thi"));
  const [replaying, resuming] = [await scene.client(), await scene.client()];
  const params = { sessionId, cwd: scene.cwd };
  await Promise.all([
    replaying.call("session/resume", { ...params, replayFrom: start }),
    resuming.call("session/resume", params),
    // The message that is on begins again: it replaces its own beginning.
    client.call("session/resume", { ...params, replayFrom: start }),
  ]);
  for (const each of [replaying, resuming]) {
    expect(each.states(sessionId)).toEqual([{ sessionUpdate: "state_update", state: "running" }]);
    await each.until(() => each.text(sessionId).endsWith("I thi"));
  }
  gate.open();
  for (const each of [client, replaying, resuming])
    expect(await each.idle(sessionId), each === client ? "client" : "").toMatchObject({ stopReason: "end_turn" });
  expect([client, replaying, resuming].map((each) => each.text(sessionId))).toEqual([
    "I look. I think.",
    "I look. I think.",
    "I think.",
  ]);
  expect([...replaying.view(sessionId).messages.values()][0]?.id).toBe(messageId);
  expect(replaying.view(sessionId).comparable).toEqual(client.view(sessionId).comparable);
  const before = resuming.states(sessionId).length;
  await client.prompt(sessionId, "More.");
  expect(await resuming.idle(sessionId, before)).toMatchObject({ stopReason: "end_turn" });
});

test("another client's run and a push are told, with their states", async () => {
  await using scene = await openScene([answer("To the editor."), answer("To the other."), answer("To the push.")]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  const editor = await scene.editor();
  await editor.call("session/resume", { sessionId, cwd: scene.cwd, mcpServers: [] });
  await editor.prompt(sessionId, "From the editor.");
  const session = scene.stage.client.session(sessionId);
  await session.promptAndWait("From the other.");
  const push = session.push({ customType: "note", content: "Pushed." });
  await push.answered;
  await client.until(() => client.states(sessionId).length === 6);
  expect(client.states(sessionId).map(({ state, stopReason }) => stopReason ?? state)).toEqual(
    Array(3).fill(["running", "end_turn"]).flat(),
  );
  const said = [...client.view(sessionId).messages.values()];
  expect(said.map(({ blocks }) => blocks[0].text)).toEqual([
    "From the editor.",
    "To the editor.",
    "From the other.",
    "To the other.",
    "Pushed.",
    "To the push.",
  ]);
  expect(said[0]?.meta["pi-rpcd"].by).toMatchObject({ name: "ACP client" });
  expect(said[4]?.meta["pi-rpcd"]).toMatchObject({ customType: "note" });
});

test("closing tells the end of the client's own run first, and leaves another client's alone", async () => {
  const gate = new Gate();
  await using scene = await openScene([answer("I thi", hold(gate), "nk."), answer("Mi", hold(gate), "ne.")]);
  const [client, other] = [await scene.client(), await scene.client()];
  const sessionId = await client.create(scene.cwd);
  const params = { sessionId, cwd: scene.cwd };
  await other.call("session/resume", params);
  await client.prompt(sessionId, "Think.");
  await client.until(() => client.text(sessionId) === "I thi");
  const waiting = other.prompt(sessionId, "And this.").catch((error: unknown) => error);
  const session = scene.stage.client.session(sessionId);
  await expect.poll(async () => (await session.getQueue()).steering.length, patience).toBe(1);
  // Another one's run goes on, without the prompt of the client that leaves.
  expect(await other.call("session/close", { sessionId })).toEqual({});
  expect(await waiting).toMatchObject({ code: -32_800 });
  expect(await session.get()).toMatchObject({ state: "running" });
  expect((await session.getQueue()).steering).toEqual([]);
  expect(other.states(sessionId).map(({ state }) => state)).toEqual(["idle", "running"]);
  await other.call("session/resume", params);
  expect(await client.call("session/close", { sessionId })).toEqual({});
  const closed = client.received.length;
  expect(client.received.at(-1)).toMatchObject({ result: {} });
  expect(client.of(sessionId).at(-1)).toMatchObject({ state: "idle", stopReason: "cancelled" });
  expect(await other.idle(sessionId, 2)).toMatchObject({ stopReason: "cancelled" });
  const before = other.states(sessionId).length;
  await other.prompt(sessionId, "Mine.");
  await other.until(() => other.text(sessionId).endsWith("Mi"));
  gate.open();
  expect(await other.idle(sessionId, before)).toMatchObject({ stopReason: "end_turn" });
  expect(client.received).toHaveLength(closed);
});

test("a run goes on when its client ends, and its session outlives a restart of the daemon", async () => {
  await using scene = await openScene([answer("Before."), answer("After.")]);
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  const first = await client.prompt(sessionId, "First.");
  await client.idle(sessionId);
  await scene.stage.restart();
  expect(await client.run(sessionId, "Second.")).toMatchObject({ stopReason: "end_turn" });
  expect(client.text(sessionId)).toBe("Before.After.");
  expect(await client.end()).toBe(0);
  const other = await scene.client();
  await other.call("session/resume", { sessionId, cwd: scene.cwd, replayFrom: start });
  expect(other.view(sessionId).comparable).toEqual(client.view(sessionId).comparable);
  expect([...other.view(sessionId).messages.values()][0]?.id).toBe(first.messageId);
});

test("a run and the prompt that waits for it go on when their daemon is killed", async () => {
  await using scene = await openScene(
    [answer("I wait. ", call("bash", { command: "until test -e go; do sleep 0.01; done" })), answer("Both.")],
    { isKillable: true },
  );
  const client = await scene.client();
  const sessionId = await client.create(scene.cwd);
  await client.prompt(sessionId, "Wait.");
  await client.untilToolRuns(sessionId);
  const steered = client.prompt(sessionId, "And this.");
  const queue = async (): Promise<number> => (await scene.stage.client.session(sessionId).getQueue()).steering.length;
  await expect.poll(queue, patience).toBe(1);
  await scene.stage.restart();
  writeFileSync(join(scene.cwd, "go"), "");
  const { messageId } = await steered;
  expect(await client.idle(sessionId)).toMatchObject({ stopReason: "end_turn" });
  const said = [...client.view(sessionId).messages.values()];
  expect(said.map(({ blocks }) => blocks[0].text)).toEqual(["Wait.", "I wait. ", "And this.", "Both."]);
  expect(said[2]?.id).toBe(messageId);
});
