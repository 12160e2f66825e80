import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Client, SessionHandle } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, delayed, hold } from "../../provider/reply.ts";
import { Commands } from "../../server/pi/commands.ts";
import type { PiCommand, PiResponse } from "../../server/pi/records.ts";
import { shareStage } from "../helpers/shared-stage.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

const shared = shareStage({
  prepare: ({ agentDir }) => {
    const prompts = join(agentDir.path, "prompts");
    mkdirSync(prompts, { recursive: true });
    writeFileSync(join(prompts, "greet.md"), "Greet $1 politely.");
  },
});

/** The texts of the users' messages in the session's file. */
async function written(session: SessionHandle): Promise<readonly string[]> {
  const lines = readFileSync((await session.get()).file, "utf8")
    .trim()
    .split("\n");
  return lines.flatMap((line) => {
    const { message } = JSON.parse(line) as { message?: { role: string; content: { text: string }[] } };
    return message?.role === "user" ? [message.content.map(({ text }) => text).join("")] : [];
  });
}

async function queueOf(session: SessionHandle): Promise<readonly string[]> {
  const { steering, followUp } = await session.getQueue();
  return [...steering, ...followUp].map(({ text }) => text);
}

/** When pi is killed: before or after a command is written to it, or with its answer. */
type Moment = "before" | "written" | "answered";

/** Replaces the answer to a command, if it returns one. */
type Change = (command: PiCommand, send: () => Promise<PiResponse>) => Promise<PiResponse> | undefined;

/** Replaces the answers to commands during a test. */
function change(act: Change): void {
  const { send } = Commands.prototype;
  const spy = vi.spyOn(Commands.prototype, "send").mockImplementation(function (this: Commands, command, options) {
    const original = (): Promise<PiResponse> => send.call(this, command, options);
    return act(command, original) ?? original();
  });
  onTestFinished(() => spy.mockRestore());
}

const refusal: PiResponse = { type: "response", command: "", success: false, error: "no" };
const isClear = ({ type }: PiCommand): boolean => type === "clear_queue";
const gives =
  (text: string) =>
  ({ message }: PiCommand): boolean =>
    message === text;

/** A run that waits at a gate, with four prompts in pi's queue. */
async function queued(
  { session: begun }: Pick<Stage, "session">,
  gate: Gate,
): Promise<{ session: SessionHandle; ids: readonly string[] }> {
  const session = await begun();
  session.runUntilSettled("begin").catch(() => {});
  await gate.reached;
  const ids: string[] = [];
  for (const text of ["one", "two", "three"]) ids.push((await session.steer(text)).promptId);
  ids.push((await session.followUp("four")).promptId);
  return { session, ids };
}

async function statesOf(client: Client, ids: readonly string[]): Promise<readonly string[]> {
  return await Promise.all(ids.map(async (promptId) => (await client.call("prompt/get", { promptId })).state));
}

const cases: readonly { name: string; moment: Moment; fits: (command: PiCommand) => boolean; isKept: boolean }[] = [
  { name: "before its queue is emptied", fits: isClear, moment: "before", isKept: false },
  { name: "when its queue was emptied", fits: isClear, moment: "answered", isKept: true },
  { name: "while it is given the first one back", fits: gives("one"), moment: "written", isKept: true },
  { name: "when it was given some back", fits: gives("three"), moment: "answered", isKept: true },
];

test.each(cases)("a pi that is killed $name loses no prompt silently, and duplicates none", async (killed) => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [delayed(hold(gate), answer("never"))] } });
  const { client } = stage;
  const { session, ids } = await queued(stage, gate);
  const { pid } = await session.get();
  let isDone = false;
  change((command, send) => {
    if (isDone || !killed.fits(command)) return undefined;
    isDone = true;
    const kill = (): void => void process.kill(pid as number, "SIGKILL");
    if (killed.moment === "before") kill();
    const sent = send();
    if (killed.moment === "written") kill();
    return killed.moment === "answered" ? sent.finally(kill) : sent;
  });
  const cancelled = client.call("prompt/cancel", { promptId: ids[1] as string });
  if (killed.isKept) {
    expect((await cancelled).cancelled).toBe(true);
    expect(await statesOf(client, ids)).toEqual(["queued", "withdrawn", "queued", "queued"]);
    expect(await queueOf(session)).toEqual(["one", "three", "four"]);
  } else {
    await expect(cancelled).rejects.toMatchObject({ kind: "child_exited" });
    await expect.poll(() => statesOf(client, ids)).toEqual(["lost", "lost", "lost", "lost"]);
    expect((await session.get()).lostPrompts.map(({ text }) => text)).toEqual(["one", "two", "three", "four"]);
  }
  await session.promptAndWait("go on");
  await session.waitForIdle();
  expect(await written(session)).toEqual(["begin", "go on", ...(killed.isKept ? ["one", "three", "four"] : [])]);
  const ends = killed.isKept ? ["inserted", "withdrawn", "inserted", "inserted"] : ids.map(() => "lost");
  expect(await statesOf(client, ids)).toEqual(ends);
});

/** Lets the run end between the clearing of its queue and the next command. */
function endingAfterClear(session: SessionHandle, gate: Gate): Change {
  return (command, send) => {
    if (!isClear(command)) return undefined;
    return send().then(async (response) => {
      gate.open();
      await expect.poll(async () => (await session.get()).state).toBe("idle");
      return response;
    });
  };
}

test("prompts that are returned to the queue after their run ended start another run", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), answer("done"))] });
  const { session, ids } = await queued(stage, gate);
  change(endingAfterClear(session, gate));
  expect((await stage.client.call("prompt/cancel", { promptId: ids[1] as string })).cancelled).toBe(true);
  await session.waitForIdle();
  expect((await written(session)).slice(-4)).toEqual(["begin", "one", "three", "four"]);
});

test("prompts that are returned to the queue after their run was aborted stay queued", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), answer("done"))] });
  const { session, ids } = await queued(stage, gate);
  // Like a tool that ignores the abort: the run continues to its end.
  const ending = endingAfterClear(session, gate);
  change((command, send) => (command.type === "abort" ? Promise.resolve(refusal) : ending(command, send)));
  await expect(session.abort()).rejects.toMatchObject({ kind: "refused_by_pi" });
  expect((await stage.client.call("prompt/cancel", { promptId: ids[1] as string })).cancelled).toBe(true);
  expect((await session.get()).state).toBe("idle");
  expect((await session.clearQueue()).steering).toEqual(["one", "three"]);
});

test("a prompt that pi refuses when it is returned is lost, and reported as lost", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), answer("done"))] });
  const { session, ids } = await queued(stage, gate);
  change((command) => (gives("three")(command) ? Promise.resolve(refusal) : undefined));
  expect((await stage.client.call("prompt/cancel", { promptId: ids[1] as string })).cancelled).toBe(true);
  expect(await statesOf(stage.client, ids)).toEqual(["queued", "withdrawn", "lost", "queued"]);
  gate.open();
  await session.waitForIdle();
  expect((await written(session)).slice(-3)).toEqual(["begin", "one", "four"]);
});

test("a queued prompt that pi expanded from a template is still recognised after it was returned", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [delayed(hold(gate), answer("done"))] });
  const session = await stage.session();
  const run = session.runUntilSettled("begin");
  await gate.reached;
  const first = await session.followUp("away");
  const { promptId } = await session.followUp("/greet Ada");
  expect(await queueOf(session)).toEqual(["away", "Greet Ada politely."]);
  expect((await stage.client.call("prompt/cancel", { promptId: first.promptId })).cancelled).toBe(true);
  expect((await session.getQueue()).followUp).toMatchObject([{ text: "Greet Ada politely.", promptId }]);
  gate.open();
  await run;
  await session.waitForIdle();
  expect(await statesOf(stage.client, [promptId])).toEqual(["inserted"]);
});
