import { answer, call, hold } from "../../../../provider/reply.ts";
import { compactInRunIsRefused, idleQueueStartsRun, noPromptIsLost } from "../allowances.ts";
import type { FrontEnd } from "../front-end.ts";
import type { PiRecord } from "../records.ts";
import type { Scenario } from "../scenario.ts";

/** An answer that is held after its first delta, and the answers after it. */
const held: NonNullable<Scenario["script"]> = (gates) => [
  answer("one ", hold(gates.named("one")), "more"),
  "two",
  "three",
];

/** Starts a run and waits until its answer is held. */
async function startHeld(front: FrontEnd): Promise<void> {
  await front.call({ type: "prompt", message: "first" });
  await front.streamed("one");
}

/** Lets the held run go on, and waits for its end. */
async function finish(front: FrontEnd): Promise<void> {
  front.gate("one").open();
  await front.settled();
}

/** Commands during a run: queues, abort. */
export const runs: readonly Scenario[] = [
  {
    name: "a prompt during a run, without streamingBehavior",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.call({ type: "prompt", message: "second" });
      await finish(front);
    },
  },
  {
    name: "a prompt during a run, to steer",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.call({ type: "prompt", message: "second", streamingBehavior: "steer" });
      await front.call({ type: "get_state" });
      await finish(front);
    },
  },
  {
    name: "a prompt during a run, to follow up",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.call({ type: "prompt", message: "second", streamingBehavior: "followUp" });
      await finish(front);
    },
  },
  {
    name: "prompts with streamingBehavior while idle",
    play: async (front) => {
      await front.prompt("first", { streamingBehavior: "steer" });
      await front.prompt("second", { streamingBehavior: "followUp" });
    },
  },
  {
    name: "steer and follow_up during a run",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.call({ type: "follow_up", message: "later" });
      await front.call({ type: "steer", message: "now" });
      await finish(front);
    },
  },
  {
    name: "steer during a tool",
    files: { "cwd/wait.sh": "echo started; until test -e go; do sleep 0.01; done" },
    script: () => [answer(call("bash", { command: "sh wait.sh" }, "call_1")), "steered"],
    play: async (front) => {
      await front.call({ type: "prompt", message: "run it" });
      await front.until((record) => JSON.stringify(record["partialResult"] ?? "").includes("started"), "its output");
      await front.call({ type: "steer", message: "hurry" });
      front.world.write("cwd/go", "");
      await front.settled();
    },
  },
  {
    name: "several queued messages, one at a time and all at once",
    script: (gates) => [...held(gates), "four", answer("x ", hold(gates.named("x"))), "last"],
    play: async (front) => {
      await startHeld(front);
      for (const message of ["a", "b", "c"]) await front.call({ type: "steer", message });
      await finish(front);
      await front.call({ type: "set_steering_mode", mode: "all" });
      await front.call({ type: "set_follow_up_mode", mode: "all" });
      await front.call({ type: "prompt", message: "again" });
      await front.streamed("x");
      for (const message of ["d", "e"]) await front.call({ type: "steer", message });
      for (const message of ["f", "g"]) await front.call({ type: "follow_up", message });
      front.gate("x").open();
      await front.settled();
    },
  },
  {
    name: "clear_queue during a run, and while idle",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.call({ type: "steer", message: "now" });
      await front.call({ type: "follow_up", message: "later" });
      await front.call({ type: "clear_queue" });
      await finish(front);
      await front.call({ type: "clear_queue" });
    },
  },
  {
    name: "abort during an answer, then another prompt",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.call({ type: "abort" });
      await front.call({ type: "get_state" });
      await front.prompt("again");
    },
  },
  {
    name: "abort during a tool",
    script: () => [answer(call("bash", { command: "echo started; exec sleep 600" }, "call_1"))],
    play: async (front) => {
      await front.call({ type: "prompt", message: "run it" });
      await front.until((record) => JSON.stringify(record["partialResult"] ?? "").includes("started"), "its output");
      await front.call({ type: "abort" });
      await front.call({ type: "get_messages" });
    },
  },
  {
    name: "abort with messages in the queue, as the Esc key does it",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.call({ type: "steer", message: "now" });
      await front.call({ type: "follow_up", message: "later" });
      await front.call({ type: "clear_queue" });
      await front.call({ type: "abort" });
      await front.prompt("again");
    },
  },
  {
    name: "abort with messages that stay in the queue",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.call({ type: "steer", message: "now" });
      await front.call({ type: "abort" });
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "abort while idle",
    play: async (front) => {
      await front.call({ type: "abort" });
      await front.prompt("hello");
      await front.call({ type: "abort" });
    },
  },
  {
    name: "steer while idle",
    allow: [idleQueueStartsRun("steered")],
    play: async (front) => {
      await front.call({ type: "steer", message: "steered" });
      if (front.isDropIn) await front.settled();
    },
  },
  {
    name: "follow_up while idle, after a run",
    allow: [idleQueueStartsRun("followed")],
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "follow_up", message: "followed" });
      if (front.isDropIn) await front.settled();
    },
  },
  {
    name: "compact during a run",
    script: held,
    allow: [compactInRunIsRefused("compact")],
    play: async (front) => {
      await startHeld(front);
      await front.call({ id: "compact", type: "compact" });
      // pi has aborted the run before it answers.
      if (front.isDropIn) await finish(front);
    },
  },
  {
    name: "two prompts back to back",
    allow: [noPromptIsLost({ one: "first of two", two: "second of two" })],
    play: async (front) => {
      front.send({ id: "one", type: "prompt", message: "first of two" });
      front.send({ id: "two", type: "prompt", message: "second of two" });
      const responses = await Promise.all([front.response("one"), front.response("two")]);
      const accepted = responses.filter(({ success }) => success === true);
      const isRunning = ({ type, message }: PiRecord, text: string): boolean =>
        type === "message_start" && message?.role === "user" && JSON.stringify(message.content).includes(text);
      for (const { id } of front.isDropIn ? accepted : []) {
        await front.until((record) => isRunning(record, id === "one" ? "first of two" : "second of two"), String(id));
      }
      await front.settled();
    },
  },
];
