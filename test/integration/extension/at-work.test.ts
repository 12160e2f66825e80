import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, hold } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();
const before = ["keeping"];
const after = ["asking"];

let asked = 0;

/** What the helper tells the keeper. */
async function isAtWork(pi: Pi): Promise<boolean> {
  const tag = `at-work-${asked++}`;
  await pi.rpc({ type: "prompt", message: `/at-work ${tag}` });
  return (await pi.told(tag)) === "true";
}

test("pi is at work during a run, and not before and after it", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ before, after, script: [delayed(hold(gate), answer("Done."))] });
  const { pi } = lent;
  expect(await isAtWork(pi)).toBe(false);
  await pi.rpc({ type: "prompt", message: "Work." });
  await gate.reached;
  expect(await isAtWork(pi)).toBe(true);
  gate.open();
  await pi.settled();
  await expect.poll(() => isAtWork(pi)).toBe(false);
});

test("pi is at work during a compaction", async () => {
  const gate = new Gate();
  const settings = { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 } };
  await using provider = await startProvider();
  await using pi = await startPi({ provider, settings, before });
  for (const nth of [1, 2]) {
    await pi.rpc({ type: "prompt", message: "A long story. ".repeat(100) });
    await pi.settled(nth);
  }
  provider.add(delayed(hold(gate), answer("A summary.")));
  const compaction = pi.rpc({ type: "compact" });
  await gate.reached;
  expect(await isAtWork(pi)).toBe(true);
  gate.open();
  await compaction;
  expect(await isAtWork(pi)).toBe(false);
});

test("pi is at work during a client's shell command, also over a reload", async () => {
  await using lent = await shared.use({ before, after });
  const { pi } = lent;
  const { command, release } = pi.blockingCommand();
  const ended = pi.rpc({ type: "bash", command });
  await expect.poll(() => isAtWork(pi)).toBe(true);
  await pi.rpc({ type: "prompt", message: "/reload" });
  expect(await isAtWork(pi)).toBe(true);
  await release();
  await ended;
  expect(await isAtWork(pi)).toBe(false);
});

test("a shell command that an abort ends is over, and so is one that another session left", async () => {
  await using lent = await shared.use({ before, after });
  const { pi } = lent;
  const { command } = pi.blockingCommand();
  const aborted = pi.rpc({ type: "bash", command });
  await expect.poll(() => isAtWork(pi)).toBe(true);
  await pi.rpc({ type: "abort_bash" });
  await aborted;
  expect(await isAtWork(pi)).toBe(false);
  pi.write({ type: "bash", command });
  await expect.poll(() => isAtWork(pi)).toBe(true);
  await pi.replaceSession();
  expect(await isAtWork(pi)).toBe(false);
  await pi.rpc({ type: "abort_bash" });
});

test("pi is at work while a dialog is open", async () => {
  await using lent = await shared.use({ before, after });
  const { pi } = lent;
  const questions = [
    { method: "confirm", title: "One?" },
    { method: "input", title: "Two?" },
  ];
  const answered = pi.rpc({ type: "prompt", message: `/ask ${JSON.stringify(questions)}` });
  const one = await pi.event("extension_ui_request", ({ method }) => method === "confirm");
  const two = await pi.event("extension_ui_request", ({ method }) => method === "input");
  expect(await isAtWork(pi)).toBe(true);
  pi.write({ type: "extension_ui_response", id: one["id"], confirmed: true });
  expect(await isAtWork(pi)).toBe(true);
  pi.write({ type: "extension_ui_response", id: two["id"], value: "2" });
  await answered;
  expect(await isAtWork(pi)).toBe(false);
});

test("pi is at work while an extension has background work", async () => {
  await using lent = await shared.use({ before, after });
  const { pi } = lent;
  await pi.rpc({ type: "prompt", message: "/job" });
  expect(await isAtWork(pi)).toBe(true);
  await pi.rpc({ type: "prompt", message: "/job" });
  expect(await isAtWork(pi)).toBe(false);
});

test("pi is at work for a held push that starts a run, but not for one that waits for a prompt", async () => {
  const gate = new Gate();
  await using lent = await shared.use({ before, after, script: [delayed(hold(gate), answer("Done."))] });
  const { pi } = lent;
  await pi.hold(push("d1", "With the next prompt.", { deliverAs: "nextTurn" }));
  expect(await isAtWork(pi)).toBe(false);
  await pi.hold(push("d2", "Now."));
  expect(await isAtWork(pi)).toBe(true);
  await gate.reached;
  gate.open();
  await pi.settled();
  await expect.poll(() => isAtWork(pi)).toBe(false);
});

test("a conversation that exists only in memory counts as work", async () => {
  await using provider = await startProvider({ script: ["Understood."] });
  await using pi = await startPi({ provider, before, isEphemeral: true });
  expect(await isAtWork(pi)).toBe(false);
  await pi.rpc({ type: "prompt", message: "Remember this." });
  await pi.settled();
  expect(await isAtWork(pi)).toBe(true);
});
