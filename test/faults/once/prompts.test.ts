import { existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Client, SessionHandle, WireError } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../../provider/reply.ts";
import { startKillableStage } from "../../helpers/killable-stage.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { type Move, race } from "../../helpers/prompt-races.ts";
import { endingWithDaemon, startStage } from "../../helpers/stage.ts";

/** How long pi has had the prompt when it dies: measured, it is on disk at the first in half of all cases. */
const delaysMs = [0, 2, 40, 300];

/** An answer that never comes: the run is active whenever pi dies. */
const never = () => delayed(hold(new Gate()), answer("never"));

/** The users' texts in pi's own file, which does not exist while it has none. */
async function transcript(session: SessionHandle): Promise<readonly string[]> {
  const { file } = await session.get();
  return (existsSync(file) ? readFileSync(file, "utf8") : "")
    .split("\n")
    .filter((line) => line.includes('"role":"user"'))
    .map((line) => (JSON.parse(line) as { message: { content: [{ text: string }] } }).message.content[0].text);
}

/** The daemon's report about a prompt matches pi's file; the complete text of a lost one is kept. */
async function checkFate(client: Client, session: SessionHandle, promptId: string, text: string): Promise<string> {
  const { state, outcome } = await client.call("prompt/wait", { promptId });
  expect(outcome).toBe("interrupted");
  const count = (await transcript(session)).filter((own) => own === text).length;
  expect([state, count]).toEqual(count === 1 ? ["inserted", 1] : ["lost", 0]);
  const prompt = await session.getPrompt(promptId);
  if (state === "lost") {
    expect(prompt.text).toBe(text);
    expect((await session.get()).lostPrompts.map((lost) => lost.promptId)).toContain(promptId);
  }
  return state ?? "";
}

const textOf = (delayMs: number): string => `dies ${delayMs} ms behind it. ${"All of it. ".repeat(200)}`;

describe("a prompt that pi had accepted", () => {
  test("is inserted or reported as lost when pi is killed directly after it, and never resent automatically", async () => {
    await using stage = await startStage({ provider: { otherwise: never } });
    const session = await stage.session();
    for (const delayMs of delaysMs) {
      const { promptId } = await session.prompt(textOf(delayMs));
      const { pid } = await session.get();
      await pause(delayMs);
      process.kill(pid as number, "SIGKILL");
      await checkFate(stage.client, session, promptId, textOf(delayMs));
    }
    const counts = stage.provider.requests.flatMap((request) =>
      delaysMs.map((delayMs) => request.countText(textOf(delayMs), { roles: ["user"] })),
    );
    expect(Math.max(0, ...counts)).toBeLessThanOrEqual(1);
  });

  test("is so too when the daemon is killed and pi ends with it, and repeating the call with its key returns the same outcome", async () => {
    await using stage = await startKillableStage({ provider: { otherwise: never }, config: endingWithDaemon });
    const { id } = await stage.session();
    for (const delayMs of delaysMs) {
      const params = { sessionId: id, text: textOf(delayMs), idempotencyKey: `key-${delayMs}` };
      const { promptId } = await stage.client.call("session/prompt", params);
      await pause(delayMs);
      await stage.restart();
      const session = stage.client.session(id);
      const state = await checkFate(stage.client, session, promptId, textOf(delayMs));
      // The first answer again, if it was on disk; otherwise the prompt's own receipt.
      const again = await stage.client.call("session/prompt", params).catch((error: WireError) => error.data);
      expect(again).toMatchObject(
        state === "lost" && "name" in again ? { promptId, name: "prompt_lost" } : { promptId },
      );
      expect((await transcript(session)).filter((text) => text === textOf(delayMs)).length).toBeLessThanOrEqual(1);
    }
  });
});

test("prompts, aborts and crashes race on real pi: every call is answered, nothing is lost silently or duplicated", async () => {
  const work = [answer(call("bash", { command: "true" })), answer("done")];
  await using stage = await startStage({ provider: { otherwise: (request) => work[request.n % 2] ?? answer("done") } });
  const session = await stage.session();
  const { client } = stage;
  await using told = await Notifications.of(stage.stateDir, session.id);
  const prompt = (n: number, ifRunning: "refuse" | "steer" | "followUp", twice = false): Move => ({
    kind: "prompt",
    n,
    ifRunning,
    twice,
  });
  const rows: Move[][] = [
    [prompt(1, "refuse"), prompt(2, "refuse"), prompt(3, "steer", true), { kind: "abort" }],
    [prompt(4, "followUp", true), { kind: "clearQueue" }, prompt(5, "steer")],
    [prompt(6, "steer"), { kind: "compact" }, prompt(7, "refuse", true), { kind: "abort" }],
    [prompt(8, "steer"), { kind: "crash" }, prompt(9, "followUp", true)],
    [prompt(10, "refuse"), { kind: "abort" }, { kind: "abort" }, prompt(11, "steer")],
  ];
  const moves = {
    abort: () => session.abort(),
    clearQueue: () => session.clearQueue(),
    compact: () => session.command({ type: "compact" }),
    settle: async () => {},
    crash: async () => {
      const { pid } = await session.get();
      if (pid !== undefined) process.kill(pid, "SIGKILL");
    },
  };
  const wrong = await race(
    {
      prompt: (promptId, text, ifRunning) => session.prompt(text, { promptId, ifRunning }),
      do: (kind) => moves[kind](),
      rest: async () => {
        // Prompts that an abort left in pi's queue go with the next run.
        await session.prompt("the last one", { ifRunning: "followUp" }).settled();
        await session.waitForIdle();
        await client.info();
      },
      stateOf: async (promptId) =>
        (await client.call("prompt/list", { sessionId: session.id })).prompts.find((each) => each.promptId === promptId)
          ?.state,
      transcript: () => transcript(session),
      runs: () => ({
        started: told.named("run/started").length,
        ended: told.named("run/ended").map(({ params }) => params["outcome"] as never),
      }),
    },
    rows,
  );
  expect(wrong).toEqual([]);
});
