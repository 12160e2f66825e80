import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, type Heard, type Recorder, recorder, startCore } from "../../helpers/core.ts";
import { patience } from "../../helpers/patience.ts";

async function session(core: Core, ...behaviours: string[]): Promise<{ session: Session; heard: Recorder }> {
  core.behave(...behaviours);
  const created = await core.registry.create({ cwd: core.cwd });
  const heard = recorder();
  created.subscribe(heard, { after: 0 });
  return { session: created, heard };
}

const prompt = (to: Session, text: string, more: { promptId?: string; ifRunning?: "steer" | "followUp" } = {}) =>
  to.prompting.prompt({ text, ifRunning: "refuse", ...more });

const kindOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => "success",
    (error: WireError) => error.kind,
  );

const never = new AbortController().signal;
const over = (of: Session, promptId: string) => of.prompts.ledger.over(promptId, patience.timeout, never);

const isEnd = ({ method }: Heard) => method === "run/ended";

/** The notifications about prompts and runs, in a word each. */
function summary({ heard }: Recorder): string[] {
  return heard.flatMap(({ method, params }) => {
    if (method === "prompt/updated") {
      const { state, outcome } = params.prompt;
      return [outcome === undefined ? state : `${state}: ${outcome}`];
    }
    if (method === "run/started") return ["run"];
    return method === "run/ended" ? [`end: ${params.outcome}`] : [];
  });
}

/** Writes an entry to the session file as pi does. */
function write(to: Session, text: string, id: string = randomUUID()): string {
  const message = { role: "user", content: [{ type: "text", text }] };
  const timestamp = new Date(Date.now() + 60_000).toISOString();
  appendFileSync(to.file, `${JSON.stringify({ type: "message", id, parentId: null, timestamp, message })}\n`);
  return id;
}

describe("a prompt's receipts", () => {
  test("report its way from the store into the transcript, and how its run ended", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core);
    const { promptId, runId } = await prompt(created, "hello");
    await heard.until(isEnd);
    expect(summary(heard)).toEqual(["stored", "run", "started", "inserted", "inserted: settled", "end: settled"]);
    const end = heard.heard.find(isEnd);
    expect(end?.params).toMatchObject({ runId, promptIds: [promptId] });
    expect(created.prompts.ledger.find(promptId)).toMatchObject({ state: "inserted", runId, outcome: "settled" });
    expect(heard.heard.map(({ params }) => params.seq)).toEqual(heard.heard.map((_, i) => i + 1));
  });

  test("report that a prompt handled by a command has no run", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core);
    const { promptId } = await prompt(created, "/handled");
    await heard.until(({ params }) => params.prompt?.state === "handled");
    expect((await over(created, promptId)).prompt).toMatchObject({ state: "handled", disposition: "handled" });
    expect(summary(heard)).toEqual(["stored", "handled"]);
  });

  test("report that the id of a prompt that pi refused is free again", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running");
    const slow = prompt(created, "/slow");
    await heard.until(({ params }) => params.event?.type === "agent_start");
    expect(await kindOf(prompt(created, "x", { promptId: "mine" }))).toBe("session_busy");
    expect(created.prompts.ledger.find("mine")).toBeUndefined();
    await created.prompting.abort();
    await slow;
    expect((await prompt(created, "x", { promptId: "mine" })).promptId).toBe("mine");
  });

  test("name the run that took a queued prompt", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running", "queue");
    const first = await prompt(created, "first");
    const queued = await prompt(created, "second", { ifRunning: "steer" });
    expect(queued).toMatchObject({ disposition: "queued", runId: first.runId });
    await prompt(created, "/settle");
    const { prompt: waited, end } = await over(created, queued.promptId);
    expect(waited).toMatchObject({ state: "inserted", runId: first.runId, outcome: "settled" });
    expect(end?.promptIds).toEqual([first.promptId, queued.promptId]);
    expect(heard.heard.filter(isEnd)).toHaveLength(1);
  });

  test("report a prompt that was taken back with the queue as withdrawn", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running", "queue");
    await prompt(created, "first");
    const { promptId } = await prompt(created, "second", { ifRunning: "followUp" });
    expect(await created.prompting.clearQueue()).toEqual({ steering: [], followUp: ["second"] });
    expect((await over(created, promptId)).prompt.state).toBe("withdrawn");
    expect(summary(heard).at(-1)).toBe("withdrawn");
  });

  test("report a prompt that was taken back as its run ended as withdrawn", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running", "queue", "settle-on-clear");
    await prompt(created, "first");
    const { promptId } = await prompt(created, "second", { ifRunning: "followUp" });
    expect(await created.prompting.clearQueue()).toEqual({ steering: [], followUp: ["second"] });
    await heard.until(isEnd);
    expect((await over(created, promptId)).prompt.state).toBe("withdrawn");
  });

  test("keep the whole text of a lost prompt, across daemons", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "die-after-response");
    const text = "precious ".repeat(1_000);
    const { promptId } = await prompt(created, text);
    const { prompt: lost } = await over(created, promptId);
    expect(lost).toMatchObject({ state: "lost", outcome: "interrupted", text });
    await core.restart();
    expect(core.registry.findPrompt(promptId)).toMatchObject({ state: "lost", text });
  });

  test("give each of two prompts with the same text its own entry id", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running", "queue");
    await prompt(created, "first");
    const twice = [
      await prompt(created, "same", { ifRunning: "steer" }),
      await prompt(created, "same", { ifRunning: "steer" }),
    ];
    const entryId = write(created, "same");
    await core.restart();
    const states = twice.map(({ promptId }) => core.registry.findPrompt(promptId));
    expect(states).toMatchObject([{ state: "inserted", entryId }, { state: "lost" }]);
  });
});

describe("a prompt's id", () => {
  test("returns the same receipt again, immediately and later, and sends nothing twice", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core);
    const both = await Promise.all([
      prompt(created, "x", { promptId: "mine" }),
      prompt(created, "x", { promptId: "mine" }),
    ]);
    expect(both[0]).toEqual(both[1]);
    await over(created, "mine");
    expect(await prompt(created, "x", { promptId: "mine" })).toMatchObject({
      ...both[0],
      state: "inserted",
      outcome: "settled",
    });
    await core.restart();
    const again = await prompt(core.registry.get(created.sessionId), "x", { promptId: "mine" });
    expect(again).toMatchObject({ ...both[0], outcome: "settled" });
    expect(heard.heard.filter(({ params }) => params.event?.type === "agent_start")).toHaveLength(1);
  });

  test("is not accepted for another prompt, of this session or another", async () => {
    await using core = await startCore();
    const { session: created } = await session(core);
    const other = await core.registry.create({ cwd: core.cwd });
    const attempts = [
      prompt(created, "x", { promptId: "mine" }),
      prompt(created, "y", { promptId: "mine" }),
      prompt(other, "x", { promptId: "mine" }),
    ];
    // Which session's file is read first depends on the system.
    const kinds = await Promise.all(attempts.map(kindOf));
    expect(kinds.toSorted()).toEqual(["conflict", "conflict", "success"]);
    expect(kinds[1]).toBe("conflict");
    const taken = kinds[0] === "success" ? other : created;
    expect(await kindOf(prompt(taken, "x", { promptId: "mine" }))).toBe("conflict");
  });

  test("sends nothing again if the prompt is lost", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "die-before-response");
    expect(await kindOf(prompt(created, "x", { promptId: "mine" }))).toBe("child_exited");
    core.behave();
    expect(await kindOf(prompt(created, "x", { promptId: "mine" }))).toBe("prompt_lost");
    expect(created.state.kind).toBe("crashed");
  });
});

test("a session created again under the id of an earlier call is the same session, also after a restart of the daemon", async () => {
  await using core = await startCore();
  const params = { cwd: core.cwd };
  const first = await core.registry.create(params, "session-1");
  expect(await core.registry.create(params, "session-1")).toBe(first);
  await core.restart();
  const again = await core.registry.create(params, "session-1");
  expect(again.info()).toMatchObject({ sessionId: "session-1", state: "hibernated", file: first.file });
  expect(core.registry.all()).toHaveLength(1);
});

describe("a run", () => {
  test("that is aborted is reported as aborted", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running");
    const { promptId } = await prompt(created, "x");
    await created.prompting.abort();
    expect((await over(created, promptId)).prompt.outcome).toBe("aborted");
    expect((await heard.until(isEnd)).params.outcome).toBe("aborted");
  });

  test("whose last message is an error fails, with pi's error text", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "model-error");
    const { promptId } = await prompt(created, "x");
    await heard.until(isEnd);
    const { end } = await over(created, promptId);
    expect(end).toMatchObject({ outcome: "failed", stopReason: "error", error: "overloaded", text: "half" });
  });

  test("whose pi dies is interrupted, also when the daemon dies with it", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running");
    const { runId, promptId } = await prompt(created, "x");
    write(created, "x");
    await heard.until(({ params }) => params.prompt?.state === "inserted");
    await core.kill();
    const again = core.registry.get(created.sessionId);
    const later = recorder();
    again.subscribe(later, { after: 0 });
    expect(later.heard.filter(isEnd).map(({ params }) => params)).toMatchObject([{ runId, outcome: "interrupted" }]);
    expect((await over(again, promptId)).prompt).toMatchObject({ state: "inserted", outcome: "interrupted" });
  });

  test("does not end at a settled report that pi's state contradicts", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running", "bogus-settled");
    await prompt(created, "x");
    await heard.until(({ params }) => params.event?.type === "agent_settled");
    await prompt(created, "more", { ifRunning: "steer" });
    expect(created.state.kind).toBe("running");
    await created.prompting.abort();
    await heard.until(isEnd);
    expect(summary(heard).filter((word) => word.startsWith("end"))).toEqual(["end: aborted"]);
  });

  test("is waited for no longer than requested, and the end of its session ends the wait", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running");
    const { promptId } = await prompt(created, "x");
    expect(await kindOf(created.prompts.ledger.over(promptId, 1, never))).toBe("deadline_exceeded");
    const waiting = kindOf(over(created, promptId));
    await core.registry.close(created.sessionId);
    expect(await waiting).toBe("session_closed");
  });
});

describe("waiting until a session is idle", () => {
  const idle = (of: Session, timeoutMs: number, signal = never) => of.idleness.wait(timeoutMs, signal);

  test("ends immediately without a run, otherwise after it", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running");
    await idle(created, 0);
    const { promptId } = await prompt(created, "x");
    expect(await kindOf(idle(created, 1))).toBe("deadline_exceeded");
    const waiting = idle(created, patience.timeout);
    await created.prompting.abort();
    await waiting;
    expect(created.prompts.ledger.find(promptId)?.outcome).toBe("aborted");
  });

  test("waits for queued messages, and for a push that starts a run", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running", "queue");
    await core.tracker.accept({ sessionId: created.sessionId, customType: "n", content: "x", deliveryId: "p" });
    expect(await kindOf(idle(created, 1))).toBe("deadline_exceeded");
    await created.pushing.withdraw(["p"], { kind: "withdrawn", at: 1, as: "cancelled", reason: cancelled });
    await idle(created, patience.timeout);
    await prompt(created, "x");
    await prompt(created, "y", { ifRunning: "followUp" });
    await created.prompting.abort();
    expect(await kindOf(idle(created, 1))).toBe("deadline_exceeded");
    const waiting = idle(created, patience.timeout);
    await created.prompting.clearQueue();
    await waiting;
  });

  test("ends when its caller cancels it, and when the session ends", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running");
    await prompt(created, "x");
    const leaving = new AbortController();
    const left = idle(created, patience.timeout, leaving.signal);
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    const waiting = kindOf(idle(created, patience.timeout));
    await core.registry.close(created.sessionId);
    expect(await waiting).toBe("session_closed");
  });
});

const cancelled = { code: "cancelled", message: "taken back" } as const;

describe("a pi that does not answer", () => {
  test("blocks neither the caller of a prompt nor that of an abort, and closing the session ends it", async () => {
    await using core = await startCore();
    const { session: created } = await session(core);
    const { state } = created;
    if (state.kind !== "idle") throw new Error(state.kind);
    process.kill(state.child.pid, "SIGSTOP");
    const leaving = new AbortController();
    const signal = leaving.signal;
    const stuck = created.prompting.prompt({ text: "x", ifRunning: "refuse", promptId: "mine", signal });
    const aborting = created.prompting.abort({ signal });
    const behind = created.prompting.prompt({ text: "y", ifRunning: "steer", signal });
    await expect.poll(() => created.prompts.ledger.find("mine")?.state).toBe("stored");
    leaving.abort(new Error("gone"));
    const all = await Promise.allSettled([stuck, aborting, behind]);
    expect(all.map((each) => each.status === "rejected" && each.reason.message)).toEqual(["gone", "gone", "gone"]);
    process.kill(state.child.pid, "SIGCONT");
    // A prompt that pi already has gets its run, and the abort follows; the prompt that waited was never written.
    await over(created, "mine");
    await created.idleness.wait(patience.timeout, never);
    expect(created.prompts.runs.started).toBe(1);
  });
});
