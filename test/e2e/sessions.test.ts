import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { connect, type EventGap, isAgentSettled, type SessionHandle, type WireError } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../provider/reply.ts";
import { shareStage } from "../helpers/shared-stage.ts";
import { type Stage, startStage } from "../helpers/stage.ts";

const shared = shareStage();

const kindOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => "success",
    (error: WireError) => error.kind,
  );

/** A reply that waits before its headers, and is never sent unless the gate is opened. */
function held(): { gate: Gate; reply: ReturnType<typeof delayed> } {
  const gate = new Gate();
  return { gate, reply: delayed(hold(gate), answer("late")) };
}

async function settled(session: SessionHandle, action: () => Promise<unknown>): Promise<void> {
  const events = session.events();
  await events.ready;
  await action();
  for await (const { event } of events) if (isAgentSettled(event)) return;
}

describe("prompts on real pi", () => {
  test("written at once: one runs, the other is refused by name", async () => {
    const { gate, reply } = held();
    await using stage = await shared.use({ script: [reply] });
    const session = await stage.session();
    const outcomes = await Promise.all([kindOf(session.prompt("first")), kindOf(session.prompt("second"))]);
    expect(outcomes).toEqual(["success", "session_busy"]);
    await settled(session, async () => gate.open());
    expect(stage.provider.requests.map((request) => request.hasText("second"))).toEqual([false]);
  });

  test("that say what to do in a run are queued there, and all reach the model", async () => {
    const gate = new Gate();
    const first = delayed(hold(gate), answer(call("bash", { command: "true" })));
    await using stage = await shared.use({ script: [first, answer("a"), answer("b")] });
    const session = await stage.session();
    await settled(session, async () => {
      await Promise.all([
        session.prompt("begun"),
        session.prompt("steered", { ifRunning: "steer" }),
        session.prompt("followed", { ifRunning: "followUp" }),
      ]);
      gate.open();
    });
    const last = stage.provider.requests.at(-1);
    for (const text of ["begun", "steered", "followed"]) expect(last?.countText(text, { roles: ["user"] })).toBe(1);
  });

  test("are aborted by an abort directly after them, every time", async () => {
    await using stage = await shared.use({ otherwise: () => held().reply });
    const session = await stage.session();
    for (let i = 0; i < 10; i += 1) {
      const [prompted, aborted] = await Promise.all([session.prompt(`round ${i}`), session.abort()]);
      expect(prompted.disposition).toBe("started");
      expect(aborted).toEqual({ aborted: true, deliveries: [] });
      expect((await session.get()).state).toBe("idle");
    }
  });

  test("while idle can be steers and follow-ups, and run at once", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    await settled(session, () => session.steer("steer me"));
    await settled(session, () => session.followUp("follow me"));
    expect(stage.provider.requests).toHaveLength(2);
  });

  test("whose pi is killed at any moment are in the transcript, or are reported as lost", async () => {
    await using stage = await shared.use({ otherwise: () => held().reply });
    for (let round = 0; round < 6; round += 1) {
      const session = await stage.freshSession();
      const { pid } = await session.get();
      const text = `precious ${round}`;
      const prompt = session.prompt(text).catch(() => {});
      // Without waiting, or as soon as pi has accepted it.
      if (round % 2 === 1) await prompt;
      process.kill(pid as number, "SIGKILL");
      await prompt;
      await settled(session, async () => {
        // Waking it waits for the reports about the crash.
        await session.command({ type: "get_state" }).catch(() => {});
        await session.prompt("again", { ifRunning: "steer" });
        await session.abort();
      });
      const info = await session.get();
      const inFile = readFileSync(info.file, "utf8").includes(text);
      const lost = info.lostPrompts.some((prompt) => prompt.text === text);
      expect([inFile, lost], `round ${round}`).toEqual(inFile ? [true, false] : [false, true]);
      await session.close();
    }
  });
});

describe("a session on real pi", () => {
  test("outlives its child and its daemon, with its transcript", async () => {
    await using stage = await shared.use();
    const before = await stage.session();
    const { generation } = await before.get();
    expect(await before.promptAndWait("remember 4711")).toContain("4711");
    await stage.restart();
    const after = stage.client.session(before.id);
    expect((await after.get()).state).toBe("hibernated");
    await after.promptAndWait("what was it?");
    expect(stage.provider.requests.at(-1)?.hasText("remember 4711")).toBe(true);
    expect(await after.get()).toMatchObject({
      state: "idle",
      generation: generation + 1,
      model: { provider: "scripted", id: "model-1" },
    });
  });

  test("sends a client with a cursor from before a restart everything after it, without a hole", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    await session.promptAndWait("one");
    const before = (await session.get()).cursor;
    await stage.restart();
    const again = stage.client.session(session.id);
    await again.promptAndWait("two");
    const gaps: EventGap[] = [];
    const stream = again.events({ after: before, onGap: (gap) => gaps.push(gap) });
    const seqs: number[] = [];
    for await (const { seq, event } of stream) {
      seqs.push(seq);
      if (isAgentSettled(event)) break;
    }
    expect(gaps).toEqual([]);
    expect(seqs[0]).toBeGreaterThan(before);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  });

  test("forwards pi's other commands unchanged, without the helper's own, and refuses those that must not bypass it", async () => {
    await using stage = await shared.use();
    const session = await stage.session();
    expect(await session.command({ type: "get_state" })).toMatchObject({ sessionId: session.id, isStreaming: false });
    const { commands } = (await session.command({ type: "get_commands" })) as { commands: { name: string }[] };
    expect(commands.filter(({ name }) => name.startsWith("rpcd") || name.startsWith("pi-rpcd"))).toEqual([]);
    const settings = readFileSync(join(stage.agentDir.path, "settings.json"), "utf8");
    expect(await kindOf(session.command({ type: "prompt", message: "x" }))).toBe("forbidden");
    expect(await kindOf(session.command({ type: "set_auto_retry", enabled: false }))).toBe("forbidden");
    expect(readFileSync(join(stage.agentDir.path, "settings.json"), "utf8")).toBe(settings);
    expect(await kindOf(session.command({ type: "no_such_command" }))).toBe("unsupported_by_pi");
    expect(await kindOf(session.command({ type: "set_model" }))).toBe("invalid_params");
    expect(await kindOf(session.command({ type: "set_model", provider: "x", modelId: "y" }))).toBe("model_not_found");
    await session.command({ type: "set_model", provider: "scripted", modelId: "model-2" });
    expect((await session.get()).model).toEqual({ provider: "scripted", id: "model-2" });
  });

  test("leaves no file when it is closed without a message, and no process", async () => {
    await using stage = await shared.use();
    const session = await stage.freshSession();
    const { file, pid } = await session.get();
    expect(existsSync(file)).toBe(true);
    await session.close();
    expect(existsSync(file)).toBe(false);
    expect(() => process.kill(pid as number, 0)).toThrow();
    expect(await kindOf(session.get())).toBe("session_not_found");
    expect(await kindOf(session.push({ customType: "n", content: "x" }).accepted)).toBe("session_not_found");
  });

  test("sends every client the same events in the same order, from any cursor", async () => {
    await using stage = await shared.use();
    await using other = await connect({ stateDir: stage.stateDir });
    const session = await stage.freshSession();
    const whole = session.events({ after: 0 });
    await session.promptAndWait("hello");
    const late = other.session(session.id).events({ after: 0 });
    const seen: string[][] = [];
    for (const stream of [whole, late]) {
      const lines: string[] = [];
      for await (const envelope of stream) {
        lines.push(JSON.stringify(envelope));
        if (isAgentSettled(envelope.event)) break;
      }
      seen.push(lines);
    }
    expect(seen[0]?.length).toBeGreaterThan(8);
    expect(seen[0]).toEqual(seen[1]);
  });
});

describe("an impossible call is refused by name", () => {
  const create = (stage: Stage, params: object) => kindOf(stage.client.createSession({ cwd: stage.cwd, ...params }));

  test("when a session is created: its directory, its model, its params", async () => {
    await using stage = await startStage();
    expect(await create(stage, { cwd: join(stage.root, "nowhere") })).toBe("cwd_invalid");
    expect(await create(stage, { model: "scripted/nothing" })).toBe("model_not_found");
    expect(await create(stage, { model: "nobody/nothing" })).toBe("model_not_found");
    expect(await create(stage, { model: "--tools" })).toBe("invalid_params");
    expect((await stage.client.listSessions()).length).toBe(0);
    const files = readdirSync(stage.agentDir.path, { recursive: true }).filter((name) =>
      String(name).endsWith(".jsonl"),
    );
    expect(files).toEqual([]);
    expect(await create(stage, { model: "scripted/model-2", tools: ["read"], name: "fine" })).toBe("success");
  });

  test.each([
    ["throws while it loads", "throw new Error('the helper is broken');", /the helper is broken/],
    ["is missing", undefined, /./],
    ["loads and reports nothing", "export default function () {}", /did not load/],
  ])("when the helper %s: link_failed, with what pi said", async (_what, source, words) => {
    const directory = mkdtempSync(join(tmpdir(), "helper-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const helper = join(directory, "helper.ts");
    if (source !== undefined) writeFileSync(helper, source);
    await using broken = await startStage({ helper });
    const error = await broken.session().catch((failure: WireError) => failure);
    expect(error).toMatchObject({ kind: "link_failed", message: expect.stringMatching(words) });
    expect((error as WireError).data["stderrTail"]).toEqual(expect.any(String));
    expect(await broken.client.listSessions()).toEqual([]);
  });

  test("when an idempotency key is used again: the same session, or a conflict", async () => {
    await using stage = await startStage();
    const params = { cwd: stage.cwd, model: "scripted/model-1", idempotencyKey: "k1" };
    const [first, second] = await Promise.all([stage.client.createSession(params), stage.client.createSession(params)]);
    expect(second.id).toBe(first.id);
    expect(await kindOf(stage.client.createSession({ ...params, name: "other" }))).toBe("conflict");
    expect(await stage.client.listSessions()).toHaveLength(1);
    await stage.restart();
    expect((await stage.client.createSession(params)).id).toBe(first.id);
  });
});
