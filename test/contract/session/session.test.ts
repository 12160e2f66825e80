import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, type Recorder, recorder, startCore } from "../../helpers/core.ts";

async function session(core: Core, ...behaviours: string[]): Promise<{ session: Session; heard: Recorder }> {
  core.behave(...behaviours);
  const created = await core.registry.create({ cwd: core.cwd });
  const heard = recorder();
  created.subscribe(heard, { after: 0 });
  return { session: created, heard };
}

const prompt = (to: Session, text: string, ifRunning: "refuse" | "steer" | "followUp" = "refuse") =>
  to.prompting.prompt({ text, ifRunning });

const kindOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => "success",
    (error: WireError) => error.kind,
  );

const event = (type: string) => (heard: { method: string; params: { event?: { type: string } } }) =>
  heard.method === "session/event" && heard.params.event?.type === type;

describe("a session", () => {
  test("is one pi session file with the session's id in its header", async () => {
    await using core = await startCore();
    const { session: created } = await session(core);
    const header = JSON.parse(readFileSync(created.file, "utf8").split("\n")[0] as string) as object;
    expect(header).toMatchObject({ type: "session", version: 3, id: created.sessionId, cwd: created.cwd });
    expect(created.info()).toMatchObject({ state: "idle", generation: 1, model: { provider: "fake", id: "model" } });
  });

  test("starts a run by a prompt, and is idle when pi has settled", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core);
    const result = await prompt(created, "hello");
    expect(result).toMatchObject({ disposition: "started", runId: expect.any(String) });
    await heard.until(event("agent_settled"));
    expect(created.state.kind).toBe("idle");
    const states = heard.heard
      .filter(({ method }) => method === "session/updated")
      .map(({ params }) => params.session.state);
    expect(states.slice(-2)).toEqual(["running", "idle"]);
  });

  test("numbers all its notifications in one sequence", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core);
    await prompt(created, "hello");
    await heard.until(event("agent_settled"));
    expect(heard.heard.map(({ params }) => params.seq)).toEqual(heard.heard.map((_, i) => i + 1));
    const late = recorder("late");
    created.subscribe(late, { after: 3 });
    expect(late.heard).toEqual(heard.heard.slice(3));
  });

  test("refuses the second of two prompts written at once, unless that prompt sets ifRunning", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running");
    const outcomes = await Promise.all([
      kindOf(prompt(created, "first")),
      kindOf(prompt(created, "second")),
      prompt(created, "third", "steer").then(({ disposition }) => disposition),
      prompt(created, "fourth", "followUp").then(({ disposition }) => disposition),
    ]);
    expect(outcomes).toEqual(["success", "session_busy", "queued", "queued"]);
  });

  test("aborts the prompt that was written right before the abort, before the waiting prompts", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running");
    const first = prompt(created, "first");
    const second = prompt(created, "second");
    const aborted = created.prompting.abort();
    expect(await aborted).toBe(true);
    expect((await first).disposition).toBe("started");
    // Its turn came after the abort, so it found the session idle.
    expect((await second).disposition).toBe("started");
  });

  test("has nothing to abort while idle", async () => {
    await using core = await startCore();
    const { session: created } = await session(core);
    expect(await created.prompting.abort()).toBe(false);
  });

  test("knows the outcome of a prompt even if pi does not report it", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "no-disposition", "keep-running");
    expect((await prompt(created, "/handled")).disposition).toBe("handled");
    expect((await prompt(created, "real")).disposition).toBe("started");
    expect((await prompt(created, "more", "steer")).disposition).toBe("queued");
  });

  test("refuses text that begins with the helper's command, and reveals that command to no client", async () => {
    await using core = await startCore();
    const { session: created } = await session(core);
    expect(await kindOf(prompt(created, '/fake-control {"kind":"ping"}'))).toBe("forbidden");
  });

  test("cancels a dialog without a responder immediately, and reports it", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "dialog");
    await prompt(created, "x");
    const answered = await heard.until(event("dialog_answered"));
    expect(answered.params.event.answer).toEqual({ type: "extension_ui_response", id: "q1", cancelled: true });
    expect(heard.heard.some(event("extension_ui_request"))).toBe(true);
  });

  test("shows a record that could not be forwarded as an event of the daemon", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "malformed");
    await prompt(created, "x");
    await heard.until(event("agent_settled"));
    const kinds = heard.heard.filter(event("rpcd_diagnostic")).map(({ params }) => params.event.kind);
    expect(kinds).toHaveLength(7);
    expect(kinds[0]).toBe("unparsable");
  });
});

describe("a session whose pi dies", () => {
  test.each(["die-before-response", "die-after-response"])(
    "by %s reports the prompt as lost, and does not send it again",
    async (how) => {
      await using core = await startCore();
      const { session: created, heard } = await session(core, how);
      const outcome = await kindOf(prompt(created, "precious"));
      expect(outcome).toBe(how === "die-before-response" ? "child_exited" : "success");
      const { params } = await heard.until(({ params }) => params.lostPrompts !== undefined);
      expect(params.lostPrompts).toMatchObject([{ text: "precious" }]);
      expect(created.info()).toMatchObject({
        state: "crashed",
        exit: { signal: "SIGKILL", expected: false },
        lostPrompts: [{ text: "precious" }],
      });
      core.behave();
      await prompt(created, "again");
      await heard.until(({ params }) => params.event?.type === "agent_settled" && params.generation === 2);
      const texts = heard.heard.filter(event("message_end")).map(({ params }) => params.event.message.content[0].text);
      expect(texts).toEqual(["again"]);
      expect(created.info()).toMatchObject({ generation: 2, state: "idle" });
    },
  );

  test("does not report a prompt in the session file as lost", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "die-after-response");
    const entry = {
      type: "message",
      id: "a",
      parentId: null,
      timestamp: new Date(Date.now() + 60_000).toISOString(),
      message: { role: "user", content: "kept" },
    };
    writeFileSync(created.file, `${JSON.stringify(entry)}\n`, { flag: "a" });
    await prompt(created, "kept");
    await heard.until(({ params }) => params.session?.state === "crashed");
    await core.restart();
    expect(core.registry.get(created.sessionId).info().lostPrompts).toEqual([]);
  });

  test("and whose daemon dies with it still reports the prompt that was lost", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "die-after-response");
    await prompt(created, "precious");
    await core.restart();
    const again = core.registry.get(created.sessionId);
    expect(again.info()).toMatchObject({ state: "hibernated", lostPrompts: [{ text: "precious" }] });
  });

  test("ends the wait for its run, and the next prompt starts another child", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running", "die-mid-run");
    await prompt(created, "x");
    await created.settled();
    expect(created.state.kind).toBe("crashed");
    core.behave();
    expect((await prompt(created, "y")).disposition).toBe("started");
  });

  test("cannot crash the daemon with its entries in the session file", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "die-after-response");
    writeFileSync(created.file, 'null\n7\n"x"\n[]\n{"message":null}\n', { flag: "a" });
    await prompt(created, "precious");
    await heard.until(({ params }) => params.lostPrompts !== undefined);
    await core.restart();
    expect(core.registry.get(created.sessionId).info().lostPrompts).toMatchObject([{ text: "precious", length: 8 }]);
  });

  test("is woken for a push that waits for its agent", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running");
    await core.tracker.accept({ sessionId: created.sessionId, customType: "n", content: "x", deliveryId: "p" });
    await created.pushing.handOver();
    expect(core.tracker.get("p").state).toBe("held");
    const { state } = created;
    if (state.kind !== "idle") throw new Error(state.kind);
    process.kill(state.child.pid, "SIGKILL");
    await heard.until(({ params }) => params.session?.generation === 2 && params.session.state === "idle");
    expect(created.info()).toMatchObject({ generation: 2, pendingDeliveries: 1 });
  });

  test("repeatedly is not woken without end", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "die-on-hold");
    for (let i = 0; i < 5; i += 1) {
      await core.tracker.accept({ sessionId: created.sessionId, customType: "n", content: "x", deliveryId: `p${i}` });
    }
    await created.pushing.handOver();
    await expect.poll(() => created.state.kind).toBe("crashed");
    const { generation } = created.info();
    expect(generation).toBeLessThanOrEqual(4);
    expect(core.tracker.get("p0").state).toBe("accepted");
  });
});

describe("a session whose pi or extensions misbehave", () => {
  test("continues after hostile frames and records", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "hostile-frames");
    await prompt(created, "x");
    await heard.until(event("agent_settled"));
    expect(created.state.kind).toBe("idle");
  });

  test("can be aborted, prompted and pushed to while a command waits for the run that it started", async () => {
    await using core = await startCore();
    const { session: created, heard } = await session(core, "keep-running");
    const command = prompt(created, "/slow");
    await heard.until(event("agent_start"));
    expect(await kindOf(prompt(created, "beside it"))).toBe("session_busy");
    await core.tracker.accept({ sessionId: created.sessionId, customType: "n", content: "x", deliveryId: "p" });
    await created.pushing.handOver();
    expect(core.tracker.get("p").state).toBe("held");
    expect(await created.prompting.abort()).toBe(true);
    expect((await command).disposition).toBe("handled");
  });

  test("accepts prompts and pushes while pi does not answer an abort", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running", "ignore-abort");
    await prompt(created, "x");
    const aborting = created.prompting.abort().catch((error: WireError) => error.kind);
    expect(await kindOf(prompt(created, "y"))).toBe("session_busy");
    expect((await prompt(created, "z", "steer")).disposition).toBe("queued");
    await core.registry.close(created.sessionId);
    expect(await aborting).toBe("child_exited");
  });
});

describe("ending a session", () => {
  test("while a prompt would wake it leaves no child", async () => {
    await using core = await startCore();
    const { session: created } = await session(core);
    await core.restart();
    const again = core.registry.get(created.sessionId);
    const outcomes = await Promise.all([core.registry.close(created.sessionId), kindOf(prompt(again, "x"))]);
    expect(outcomes[1]).toBe("session_closed");
    expect(again.state.kind).toBe("closed");
  });

  test("waits for creations and closings in progress", async () => {
    const core = await startCore();
    const creating = kindOf(core.registry.create({ cwd: core.cwd }));
    const { session: closing } = await session(core, "ignore-eof");
    const { state } = closing;
    if (state.kind !== "idle") throw new Error(state.kind);
    const closed = core.registry.close(closing.sessionId);
    const late = kindOf(core.registry.create({ cwd: core.cwd }));
    await core[Symbol.asyncDispose]();
    expect(await late).toBe("shutting_down");
    expect(["success", "shutting_down"]).toContain(await creating);
    await closed;
    expect(() => process.kill(state.child.pid, 0)).toThrow();
  });

  test("deletes a file that never got a message, and keeps one that did", async () => {
    await using core = await startCore();
    const { session: empty } = await session(core);
    const { session: used } = await session(core);
    const entry = { type: "message", id: "a", parentId: null, timestamp: "", message: { role: "user", content: "x" } };
    writeFileSync(used.file, `${JSON.stringify(entry)}\n`, { flag: "a" });
    await core.registry.close(empty.sessionId);
    await core.registry.close(used.sessionId);
    expect([existsSync(empty.file), existsSync(used.file)]).toEqual([false, true]);
    expect(await kindOf(core.registry.close(used.sessionId).catch((error) => Promise.reject(error)))).toBe(
      "session_not_found",
    );
  });

  test("refuses later calls", async () => {
    await using core = await startCore();
    const { session: created } = await session(core, "keep-running");
    const outcomes = Promise.all([
      kindOf(prompt(created, "a")),
      core.registry.close(created.sessionId),
      kindOf(prompt(created, "b")),
    ]);
    expect((await outcomes)[2]).toBe("session_closed");
  });

  test("that failed to start leaves no session, no file and no process", async () => {
    await using core = await startCore();
    core.behave("exit-at-start");
    expect(await kindOf(core.registry.create({ cwd: core.cwd }))).toBe("start_failed");
    expect(core.registry.all()).toEqual([]);
    const files = readdirSync(join(core.root, "agent"), { recursive: true }).filter((name) =>
      String(name).endsWith(".jsonl"),
    );
    expect(files).toEqual([]);
  });

  test.each([
    ["a missing one", (core: Core) => join(core.root, "nowhere")],
    ["a file", (core: Core) => join(core.root, "store-0.db")],
    ["a relative one", () => "here"],
  ])("is not needed where the working directory is %s: it does not begin", async (_what, cwd) => {
    await using core = await startCore();
    expect(await kindOf(core.registry.create({ cwd: cwd(core) }))).toBe("cwd_invalid");
  });
});
