import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../../client/index.ts";
import { delay as after, answer, call, delayed } from "../../../provider/reply.ts";
import { EventVerifier } from "../../helpers/event-verifier.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";

/** A session, its follower, and the work given to it before its child dies. */
interface Scene {
  readonly stage: Stage;
  readonly session: SessionHandle;
  readonly witness: EventVerifier;
}

interface Moment {
  readonly when: string;
  /** Prompts, and resolves when the child must be killed. The calls' results are awaited later. */
  readonly reach: (scene: Scene) => Promise<readonly Promise<unknown>[]>;
  /** The texts that must be in the transcript or reported as lost. */
  readonly texts: readonly string[];
}

const behindAnswer = (ms: number): Moment => ({
  when: `${ms} ms after the answer to its prompt`,
  reach: async ({ session }) => {
    await session.prompt("Count to ten.");
    if (ms > 0) await delay(ms);
    return [];
  },
  texts: ["Count to ten."],
});

const moments: readonly Moment[] = [
  {
    when: "before the answer to its prompt",
    reach: async ({ session }) => [session.prompt("Count to ten.")],
    texts: ["Count to ten."],
  },
  ...[0, 2, 40, 300].map(behindAnswer),
  {
    when: "while a tool runs",
    reach: async ({ session, witness }) => {
      await session.prompt("Use a tool.");
      await witness.event("tool_execution_start");
      return [];
    },
    texts: ["Use a tool."],
  },
  {
    when: "while it compacts",
    reach: async ({ session, witness }) => {
      await session.runUntilSettled("Remember this.");
      await session.runUntilSettled("And this.");
      const compaction = session.command({ type: "compact" });
      compaction.catch(() => {});
      await witness.event("compaction_start");
      return [compaction];
    },
    texts: ["Remember this.", "And this."],
  },
];

const rounds = 3;

/** The user's texts in pi's session file. */
function written(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line.includes('"role":"user"'))
    .map((line) => JSON.stringify(JSON.parse(line).message.content));
}

async function die(scene: Scene, { reach, texts }: Moment): Promise<void> {
  const { stage, session, witness } = scene;
  await witness.follow(stage.daemon.file);
  const { pid, cursor, file } = await session.get();
  const push = session.push({ customType: "note", content: "by the way", deliverAs: "followUp", triggerTurn: false });
  await push.accepted;
  const calls = (await reach(scene)).map((pending) => Promise.allSettled([pending]).then(([outcome]) => outcome));
  process.kill(pid ?? 0, "SIGKILL");
  const crashed = await witness.state("crashed", cursor);
  expect(crashed).toMatchObject({ exit: { signal: "SIGKILL", expected: false } });
  for (const outcome of await Promise.all(calls)) {
    if (outcome?.status === "rejected") expect(outcome.reason).toMatchObject({ data: { name: "child_exited" } });
  }
  // Its next child continues the work: the push reaches the model, and each text is in the transcript or reported as
  // lost.
  // (A prompt that found no child any more has had its run by now.)
  expect(await session.runUntilSettled("Go on.", { ifRunning: "followUp" })).toMatchObject({ stopReason: "stop" });
  // If the killed child's request already carried the push, its answer is lost and the record says so.
  const end = await push.answered.catch(() => push.delivered);
  expect(["answered", "interrupted"]).toContain(end.state === "answered" ? end.state : end.reason?.code);
  const now = await session.get();
  expect(now).toMatchObject({ state: "idle", generation: 2, file });
  const there = written(file);
  const lost = now.lostPrompts.map(({ text }) => text);
  for (const text of [...texts, "Go on."]) {
    const places = [
      there.filter((content) => content.includes(text)).length,
      lost.filter((one) => one === text).length,
    ];
    expect(places.toSorted()).toEqual([0, 1]);
  }
  expect(readFileSync(file, "utf8").split(push.id).length - 1).toBe(1);
  expect(witness.violations).toEqual([]);
  await witness.leave();
}

test.for(moments)("a child that is killed $when loses nothing that is not reported", async (moment) => {
  await using stage = await startStage({
    agent: { settings: { compaction: { enabled: true, reserveTokens: 100, keepRecentTokens: 1 } } },
    provider: {
      otherwise: (request) => {
        if (request.countText("Use a tool.") > 0 && request.countText("Go on.") === 0) {
          return answer(call("bash", { command: "sleep 1000" }));
        }
        if (request.countText("Go on.") > 0) return answer("Done.");
        return delayed(after(100), answer("One, two, three."));
      },
    },
  });
  const scenes = await Promise.all(
    Array.from({ length: rounds }, async () => {
      const session = await stage.session();
      return { stage, session, witness: new EventVerifier(session.id) };
    }),
  );
  await Promise.all(scenes.map((scene) => die(scene, moment)));
});
