import { answer, hold } from "../../../../provider/reply.ts";
import { secondBashWaits } from "../allowances.ts";
import type { Scenario } from "../scenario.ts";

/** Commands of the user's shell. */
export const shell: readonly Scenario[] = [
  {
    name: "bash, then a prompt that has its output",
    play: async (front) => {
      await front.call({ type: "bash", command: "echo out; pwd" });
      // The order of two pipes is not defined.
      await front.call({ type: "bash", command: "echo err >&2" });
      await front.call({ type: "get_messages" });
      await front.prompt("what was it?");
    },
  },
  {
    name: "bash with excludeFromContext",
    play: async (front) => {
      await front.call({ type: "bash", command: "echo hidden", excludeFromContext: true });
      await front.prompt("what was it?");
      await front.call({ type: "get_messages" });
    },
  },
  {
    name: "bash that fails, without output, and without an id",
    play: async (front) => {
      await front.call({ type: "bash", command: "echo wrong; exit 3" });
      await front.call({ type: "bash", command: "true" });
      await front.call({ type: "bash", command: "kill -9 $$" });
      front.send({ type: "bash", command: "echo anonymous" });
      await front.until(({ type, id }) => type === "response" && id === undefined, "a response without an id");
    },
  },
  {
    name: "bash with an id that is a number",
    play: async (front) => {
      await front.call({ id: 7, type: "bash", command: "echo seven" });
    },
  },
  {
    name: "bash with much output",
    play: async (front) => {
      await front.call({ type: "bash", command: "seq 1 20000" });
      await front.call({ type: "get_messages" });
    },
  },
  {
    name: "abort_bash, also without a command",
    play: async (front) => {
      await front.call({ type: "abort_bash" });
      front.send({ id: "slow", type: "bash", command: "echo started; exec sleep 600" });
      await front.until("bash_execution_update");
      front.send({ id: "abort", type: "abort_bash" });
      await Promise.all([front.response("slow"), front.response("abort")]);
      await front.call({ type: "get_messages" });
    },
  },
  {
    name: "bash during a run",
    script: (gates) => [answer("one ", hold(gates.named("one")), "more")],
    play: async (front) => {
      await front.call({ type: "prompt", message: "hello" });
      await front.streamed("one");
      await front.call({ type: "bash", command: "echo meanwhile" });
      front.gate("one").open();
      await front.settled();
      await front.call({ type: "get_messages" });
    },
  },
  {
    name: "two bash commands at once",
    files: { "cwd/wait.sh": "echo started; until test -e go; do sleep 0.01; done; echo first" },
    allow: [secondBashWaits("one", "two")],
    play: async (front) => {
      front.send({ id: "one", type: "bash", command: "sh wait.sh" });
      await front.until("bash_execution_update");
      front.send({ id: "two", type: "bash", command: "echo second" });
      if (!front.isDropIn) await front.response("two");
      front.world.write("cwd/go", "");
      await Promise.all([front.response("one"), front.response("two")]);
    },
  },
];
