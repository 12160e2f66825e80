import { Gate } from "../../../provider/gate.ts";
import { answer, call, delay, hold, type Part } from "../../../provider/reply.ts";
import { type Actor, Unexpected } from "./actor.ts";

/** Work in a session that begins and ends while it is idle. It throws when a result is not the right one. */
export interface Round {
  readonly name: string;
  readonly run: (actor: Actor) => Promise<void>;
}

/** The deltas of the long answers. */
const longAnswer = 2_000;
const piecesBetweenPauses = 50;

/** An answer of many deltas that takes a while. */
function deltas(actor: Actor, count: number): (string | Part)[] {
  const { random } = actor;
  const pauseMs = random.integer(0, 60);
  return Array.from({ length: count }, (_, n) => {
    const word = `${random.integer(0, 999_999).toString(36)} `;
    return n % piecesBetweenPauses === 0 ? [delay(random.integer(0, pauseMs)), word] : [word];
  }).flat();
}

function bash(command: string): Part {
  return call("bash", { command });
}

async function stream(actor: Actor): Promise<void> {
  actor.add(answer(...deltas(actor, longAnswer)));
  await actor.promptAndSettle(actor.text("Tell a story"));
}

async function tools(actor: Actor): Promise<void> {
  actor.add(
    answer("I look. ", bash("printf 'one\\ntwo\\n'; sleep 0.05"), bash("echo three")),
    answer("And again. ", ...deltas(actor, 100), bash("for n in $(seq 120); do echo line $n; sleep 0.004; done")),
    answer("Done."),
  );
  await actor.promptAndSettle(actor.text("Use tools"));
}

async function dialog(actor: Actor): Promise<void> {
  actor.add(answer("May I? ", bash("echo ask-first")), answer(...deltas(actor, 200)));
  await actor.promptAndSettle(actor.text("Ask first"));
}

async function pushWhileIdle(actor: Actor): Promise<void> {
  actor.add(answer(...deltas(actor, 300)));
  const push = actor.push({ deliverAs: actor.random.pick(["steer", "followUp"]) });
  await push.accepted;
  await push.delivered;
  await push.answered;
  await actor.session.waitForIdle();
}

async function pushesDuringARun(actor: Actor): Promise<void> {
  const gate = new Gate();
  actor.add(
    answer("I thi", hold(gate), ...deltas(actor, 300)),
    answer("The first. ", ...deltas(actor, 100)),
    answer("The second."),
    answer("The third."),
  );
  const run = actor.promptAndSettle(actor.text("Begin"));
  await Promise.race([gate.reached, run]);
  const steered = actor.push({ deliverAs: "steer" });
  const followed = actor.push({ deliverAs: "followUp" });
  const kept = actor.push({ deliverAs: "nextTurn" });
  await Promise.all([steered, followed, kept].map((push) => actor.until(push, "held")));
  gate.open();
  await Promise.all([run, steered.answered, followed.answered]);
  await actor.session.waitForIdle();
  await actor.promptAndSettle(actor.text("Go on"));
  await kept.answered;
}

async function pushWithoutRun(actor: Actor): Promise<void> {
  const push = actor.push({ triggerTurn: false });
  await actor.until(push, "inserted");
  actor.add(answer("Seen."));
  await actor.promptAndSettle(actor.text("Look"));
  await push.answered;
}

async function parkedByAbort(actor: Actor): Promise<void> {
  const gate = new Gate();
  actor.add(answer("I thi", hold(gate), "nk."));
  const run = actor.prompt(actor.text("Think"));
  await Promise.race([gate.reached, run]);
  const push = actor.push({ deliverAs: "steer" });
  await actor.until(push, "held");
  await actor.abort();
  gate.open();
  const { outcome } = await run;
  if (outcome !== "aborted") throw new Unexpected(`the aborted run ended ${outcome}`);
  await actor.until(push, "parked");
  await actor.session.waitForIdle();
  actor.add(answer("Carried."));
  if (actor.random.chance(0.5)) await actor.promptAndSettle(actor.text("Carry it"));
  else await actor.resend(push);
  await push.answered;
  await actor.session.waitForIdle();
}

async function equalPrompts(actor: Actor): Promise<void> {
  const gate = new Gate();
  actor.add(answer("I thi", hold(gate), ...deltas(actor, 100)), answer("Again. "), answer("And again."));
  const text = actor.text("Equal");
  const first = actor.promptAndSettle(text);
  await Promise.race([gate.reached, first]);
  const second = actor.promptAndSettle(text, { ifRunning: "followUp" });
  await Promise.race([untilQueued(actor, 1), first, second]);
  const third = actor.promptAndSettle(text, { ifRunning: "followUp" });
  await Promise.race([untilQueued(actor, 2), first, second, third]);
  gate.open();
  await Promise.all([first, second, third]);
  await actor.session.waitForIdle();
}

/** Waits until pi's queue has so many messages. */
async function untilQueued(actor: Actor, count: number): Promise<void> {
  for (;;) {
    const { followUp } = await actor.session.getQueue();
    if (followUp.length >= count) return;
    await actor.pause(20);
  }
}

export const rounds: readonly Round[] = [
  { name: "a long answer", run: stream },
  { name: "tools", run: tools },
  { name: "a dialog", run: dialog },
  { name: "a push while idle", run: pushWhileIdle },
  { name: "pushes during a run", run: pushesDuringARun },
  { name: "a push without a run", run: pushWithoutRun },
  { name: "a push parked by an abort", run: parkedByAbort },
  { name: "prompts of equal text", run: equalPrompts },
];

/** A prompt after all rounds: its request has everything. */
export const lastRound: Round = {
  name: "the last prompt",
  run: async (actor) => {
    actor.add(answer("Over."));
    await actor.promptAndSettle(actor.text("The last"));
  },
};
