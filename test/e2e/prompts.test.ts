import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { connect, type SessionHandle } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, delayed, hold, type Reply, status } from "../../provider/reply.ts";
import { Notifications } from "../helpers/notifications.ts";
import { startStage } from "../helpers/stage.ts";

const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** A reply that waits before its headers, and is never sent unless the gate is opened. */
function held(): { gate: Gate; reply: Reply } {
  const gate = new Gate();
  return { gate, reply: delayed(hold(gate), answer("late")) };
}

/** The notifications about prompts and runs, in a word each. */
function summary({ all }: Notifications): string[] {
  return all.flatMap(({ name, params }) => {
    if (name === "prompt/updated") {
      const { state, outcome } = params["prompt"] as { state: string; outcome?: string };
      return [outcome === undefined ? state : `${state}: ${outcome}`];
    }
    if (name === "run/started") return ["run"];
    return name === "run/ended" ? [`end: ${String(params["outcome"])}`] : [];
  });
}

describe("on real pi, a prompt with wait", () => {
  test("is answered with its run's outcome and final text, whatever the outcome", async () => {
    const { reply } = held();
    const script = [
      answer(call("bash", { command: "true" })),
      answer("done"),
      reply,
      answer(call("bash", { command: "sleep 60" })),
      status(400),
    ];
    await using stage = await startStage({ provider: { script } });
    const session = await stage.session();
    await using told = await Notifications.of(stage.stateDir, session.id);
    const { client } = stage;
    const ask = (text: string) => client.call("session/prompt", { sessionId: session.id, text, wait: "settled" });

    const settled = await ask("one");
    expect(settled).toMatchObject({ outcome: "settled", stopReason: "stop", text: "done", state: "inserted" });
    const prompt = await client.call("prompt/get", { promptId: settled.promptId });
    expect(prompt).toMatchObject({ runId: settled.runId, entryId: expect.any(String), length: 3 });
    const { entries } = (await session.command({ type: "get_entries" })) as { entries: { id: string }[] };
    expect(entries.map(({ id }) => id)).toContain(prompt.entryId);
    await told.until(({ name }) => name === "run/ended");
    expect(summary(told)).toEqual(["stored", "run", "started", "inserted", "inserted: settled", "end: settled"]);

    const early = ask("two");
    await stage.provider.waitForRequest(({ n }) => n === 3);
    expect((await session.abort()).aborted).toBe(true);
    expect(await early).toMatchObject({ outcome: "aborted" });

    const inTool = ask("three");
    await told.event("tool_execution_start", ({ args }) => JSON.stringify(args).includes("sleep"));
    await session.abort();
    expect(await inTool).toMatchObject({ outcome: "aborted" });

    expect(await ask("four")).toMatchObject({ outcome: "failed", stopReason: "error", error: expect.any(String) });
    await told.until(({ params }) => params["outcome"] === "failed");
    expect(summary(told).filter((word) => word.startsWith("end"))).toEqual(
      ["settled", "aborted", "aborted", "failed"].map((outcome) => `end: ${outcome}`),
    );
  });
});

/** The texts of the users' messages in the session's file. */
async function written(session: SessionHandle): Promise<readonly unknown[]> {
  const entries = readFileSync((await session.get()).file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { message?: { role: string; content: { text: string }[] } });
  return entries.flatMap(({ message }) => (message?.role === "user" ? message.content.map(({ text }) => text) : []));
}

test("on real pi, a queued prompt that is cleared as its run ends is withdrawn or inserted, as the session file shows", async () => {
  const gates = Array.from({ length: 16 }, () => new Gate());
  await using stage = await startStage({
    provider: { script: gates.map((gate) => delayed(hold(gate), answer("done"))) },
  });
  const session = await stage.session();
  for (let i = 0; i < 8; i += 1) {
    const run = session.runUntilSettled(`begin ${i}`);
    const gate = gates.shift() as Gate;
    await gate.reached;
    const { promptId } = await session.followUp(`queued ${i}`);
    const cleared = session.clearQueue();
    gate.open();
    const { followUp } = await cleared;
    const isCleared = followUp.includes(`queued ${i}`);
    if (!isCleared) gates.shift()?.open();
    await run;
    const { state } = await stage.client.call("prompt/get", { promptId });
    expect([i, state]).toEqual([i, isCleared ? "withdrawn" : "inserted"]);
    expect((await written(session)).includes(`queued ${i}`)).toBe(!isCleared);
  }
});

test("on real pi, one queued prompt is taken back, and those of other clients keep their order and their images", async () => {
  const gate = new Gate();
  const script = [delayed(hold(gate), answer("done")), answer("a"), answer("b"), answer("c")];
  await using stage = await startStage({ provider: { script } });
  const session = await stage.session();
  const { client } = stage;
  await using other = await connect({ stateDir: stage.stateDir });
  const run = session.runUntilSettled("begin");
  await gate.reached;
  const { runId } = await session.get();
  const image = { type: "image", mimeType: "image/png", data: onePixel } as const;
  const theirs = other.session(session.id);
  await theirs.steer("steer 1", { images: [image] });
  const { promptId } = await session.steer("steer 2", { expectedRunId: runId as string });
  await theirs.steer("steer 3");
  await theirs.followUp("follow-up", { expectedRunId: runId as string });
  const textsOf = async () => {
    const { steering, followUp } = await client.call("session/getQueue", { sessionId: session.id });
    return [...steering, ...followUp].map(({ text }) => text);
  };
  expect(await textsOf()).toEqual(["steer 1", "steer 2", "steer 3", "follow-up"]);
  const { cancelled, prompt } = await client.call("prompt/cancel", { promptId });
  expect([cancelled, prompt.state]).toEqual([true, "withdrawn"]);
  expect(await textsOf()).toEqual(["steer 1", "steer 3", "follow-up"]);
  const wrong = { sessionId: session.id, expectedRunId: "another" };
  await expect(client.call("session/abort", wrong)).rejects.toMatchObject({ kind: "run_mismatch", data: { runId } });
  for (const method of ["session/steer", "session/followUp"] as const) {
    const refusal = { kind: "run_mismatch", data: { runId } };
    await expect(client.call(method, { ...wrong, text: "x" })).rejects.toMatchObject(refusal);
  }
  gate.open();
  await run;
  expect(await written(session)).toEqual(
    ["begin", "steer 1", "steer 3", "follow-up"].flatMap((text, i) => (i === 1 ? [text, undefined] : [text])),
  );
  const refused = client.call("session/steer", { sessionId: session.id, text: "x", ifIdle: "refuse" });
  await expect(refused).rejects.toMatchObject({ kind: "session_idle" });
  const tooLate = theirs.followUp("x", { expectedRunId: runId as string });
  await expect(tooLate).rejects.toMatchObject({ kind: "run_mismatch" });
  const { prompts } = await client.call("prompt/list", { sessionId: session.id });
  const late = await client.call("prompt/cancel", { promptId: prompts[0]?.promptId as string });
  expect([late.cancelled, late.prompt.state]).toEqual([false, "inserted"]);
  expect(prompts.map(({ state }) => state)).toEqual(["inserted", "inserted", "withdrawn", "inserted", "inserted"]);
});

test("on real pi, the envelope of a message names its prompt and client, also when a template rewrote it in a run", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [answer("a", hold(gate), "b"), "c", "d", "e"] } });
  const prompts = join(stage.agentDir.path, "prompts");
  mkdirSync(prompts);
  writeFileSync(join(prompts, "longer.md"), "Something else: $@");
  const session = await stage.session();
  await using told = await Notifications.of(stage.stateDir, session.id);
  await using other = await connect({ stateDir: stage.stateDir, name: "Ädä" });
  const run = session.runUntilSettled("/longer one");
  await gate.reached;
  const theirs = await other.session(session.id).steer("/longer two");
  const own = await session.steer("/longer three");
  gate.open();
  await run;
  await session.push({ customType: "note", content: "Pushed.", display: false }).answered;
  const messages = told.all.filter(({ params }) => {
    const { type, message } = (params["event"] ?? {}) as { type?: string; message?: { role: string } };
    return type === "message_end" && (message?.role === "user" || message?.role === "custom");
  });
  const clients = [stage.client, other, stage.client, stage.client].map(({ id }) => ({ clientId: id }));
  expect(messages.map(({ params }) => params)).toMatchObject([
    { promptId: expect.any(String), by: clients[0] },
    { promptId: theirs.promptId, by: { ...clients[1], name: "Ädä" } },
    { promptId: own.promptId, by: clients[2] },
    { by: clients[3] },
  ]);
  expect(messages.map(({ params }) => "promptId" in params)).toEqual([true, true, true, false]);
});
