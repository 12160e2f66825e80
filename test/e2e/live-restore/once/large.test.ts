import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold } from "../../../../provider/reply.ts";
import { patience } from "../../../helpers/patience.ts";
import { Scene } from "../scene.ts";

// A prompt or a record so large that its daemon can die in the middle of it.

const mebibyte = 1024 * 1024;

test.each([0, 1, 5, 40])(
  "a prompt of 1 MiB, %s ms before the daemon dies, is in the transcript whole or not",
  async (ms) => {
    await using scene = await Scene.open();
    const { session, stage } = scene;
    const text = `Large ${"x".repeat(mebibyte)}.`;
    scene.suspend();
    const prompt = session.prompt(text, { promptId: "large" });
    prompt.catch(() => {});
    // Not a wait: the moment of the death is what the test varies.
    await sleep(ms);
    await stage.kill();
    scene.resume();
    await stage.start();
    const outcome = await prompt.settled().then(
      (run) => run.state,
      (error: { readonly kind?: string }) => error.kind,
    );
    await session.waitForIdle();
    expect(outcome).toBeOneOf(["inserted", "lost", "prompt_lost"]);
    const requests = stage.provider.requests.map((request) => request.hasText(text));
    expect(requests).toEqual(outcome === "inserted" ? [true] : []);
    expect(await session.promptAndWait("And a small one.")).toContain("small");
    expect(stage.provider.requests.every((request) => request.violations.length === 0)).toBe(true);
    expect(await session.get()).toMatchObject({ pid: scene.pid, generation: 1 });
  },
);

const isDelta = (record: string): boolean => record.startsWith('{"type":"message_update"');

const aloneOrNot = [
  { name: "while no daemon runs", isAlone: true },
  { name: "for a daemon that then dies", isAlone: false },
];

/** pi writes a tool's result of `length` characters, without a daemon or before the daemon dies. */
async function emitted(length: number, { isAlone }: { readonly isAlone: boolean }): Promise<Scene> {
  const gate = new Gate();
  const isLarge = (record: string): boolean => record.length > length;
  const scene = await Scene.open({
    script: [answer(hold(gate), call("emit", { text: "0123456789abcdef", times: length / 16 })), answer("Done.")],
    agent: { models: [{ id: "model-1", contextWindow: 100_000_000 }] },
    // So large records leave less place for deltas.
    allows: ({ reason, onlyDeltas }) => onlyDeltas === true || (length >= 8 * mebibyte && reason === "not_retained"),
  });
  const { session, stage, pid } = scene;
  try {
    const run = session.promptAndWait("Emit.");
    run.catch(() => {});
    await gate.reached;
    if (isAlone) await stage.kill();
    gate.open();
    await expect.poll(() => stage.records(pid).some(isLarge), patience).toBe(true);
    if (!isAlone) await stage.kill();
    await stage.start();
    await run;
    expect(stage.provider.requests).toHaveLength(2);
    return scene;
  } catch (error) {
    await scene[Symbol.asyncDispose]();
    throw error;
  }
}

test.each(aloneOrNot)("records of 2 MiB that pi writes $name come whole, and once", async (when) => {
  await using scene = await emitted(2 * mebibyte, when);
  await scene.check(isDelta);
});

// The store does not take so large a record: a gap names it, if its client had not got it.
test.each(aloneOrNot)(
  "records above 8 MiB that pi writes $name come whole or are named, and nothing else is missing",
  async (when) => {
    await using scene = await emitted(8 * mebibyte, when);
    await scene.check((record) => isDelta(record) || record.length > 8 * mebibyte);
  },
);
