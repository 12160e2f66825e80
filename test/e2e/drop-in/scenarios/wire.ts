import { answer, hold } from "../../../../provider/reply.ts";
import { nullEndsNothing, refusedInOwnWords, tooLongIsRefused } from "../allowances.ts";
import type { FrontEnd } from "../front-end.ts";
import type { Scenario } from "../scenario.ts";

/** More than `maxFrameBytes` of the daemon. */
const tooLongBytes = 17 * 1024 * 1024;

const held: NonNullable<Scenario["script"]> = (gates) => [answer("one ", hold(gates.named("one")), "more")];

/** Lines, ids, and how it ends. */
export const wire: readonly Scenario[] = [
  {
    name: "unknown commands, and lines that are no commands",
    play: async (front) => {
      await front.call({ type: "unknown_command", more: 1 });
      for (const line of ['{"id":"no-type"}', '{"id":"number","type":7}', '{"id":"empty","type":""}']) {
        front.write(`${line}\n`);
        await front.response(JSON.parse(line).id);
      }
      for (const line of ["[]", "7", '"text"', "true", "{}"]) {
        front.write(`${line}\n`);
        await front.until(({ type, id }) => type === "response" && id === undefined, `the answer to ${line}`);
      }
    },
  },
  {
    name: "broken JSON and blank lines",
    play: async (front) => {
      for (const line of ["{broken", "", "   ", "\r", '{"type":"get_state"', "{'type':'get_state'}", "\ufeff{}"]) {
        front.write(`${line}\n`);
        await front.until(({ command }) => command === "parse", `the answer to ${JSON.stringify(line)}`);
      }
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "lines with CR LF, in pieces, and two at once",
    play: async (front) => {
      front.write('{"id":"cr","type":"get_last_assistant_text"}\r\n');
      await front.response("cr");
      front.write('{"id":"piece","type":"get_last');
      front.write('_assistant_text"}\n');
      await front.response("piece");
      const both = ["a", "b"].map((id) => JSON.stringify({ id, type: "get_last_assistant_text" }));
      front.write(`${both.join("\n")}\n`);
      await Promise.all([front.response("a"), front.response("b")]);
    },
  },
  {
    name: "ids of every kind, equal ones, and none",
    play: async (front) => {
      const ids = ["text", "", "😀\u2028", 7, 0, -1.5, true, false, null, {}, { a: [1] }, [], [1, "x"]];
      for (const id of ids) {
        front.send({ id, type: "get_last_assistant_text" });
        await front.response(id);
      }
      for (const command of ["unknown_command", "abort"]) {
        front.send({ id: "equal", type: command });
        await front.until((record) => record.type === "response" && record.command === command, command);
      }
      front.send({ type: "get_last_assistant_text" });
      await front.until(({ type, id }) => type === "response" && id === undefined, "the response without an id");
      front.send({ id: "prompt", type: "prompt", message: "one" });
      await front.settled();
      front.send({ id: 8, type: "prompt", message: "two" });
      await front.settled();
      front.send({ type: "prompt", message: "three" });
      await front.settled();
      front.send({ id: null, type: "set_model", provider: "unknown", modelId: "x" });
      await front.until(({ command }) => command === "set_model");
    },
  },
  {
    name: "malformed commands",
    allow: [refusedInOwnWords("name", "text", "bash", "mode", "steer", "list", "switch", "fork")],
    play: async (front) => {
      await front.call({ id: "name", type: "set_session_name" });
      await front.call({ id: "text", type: "prompt" });
      await front.call({ id: "bash", type: "bash" });
      await front.call({ id: "steer", type: "steer" });
      await front.call({ id: "list", type: "prompt", message: ["a"] });
      await front.call({ id: "switch", type: "switch_session" });
      await front.call({ id: "fork", type: "fork" });
    },
  },
  {
    name: "commands one after the other without waiting",
    play: async (front) => {
      const types = ["get_last_assistant_text", "get_fork_messages", "get_available_thinking_levels", "abort_retry"];
      for (const [index, type] of [...types, ...types].entries()) front.send({ id: index, type });
      await front.response(types.length * 2 - 1);
    },
  },
  {
    name: "the line null",
    allow: [nullEndsNothing("next")],
    play: async (front) => {
      front.write("null\n");
      if (front.isDropIn) await front.call({ id: "next", type: "get_state" });
      else await front.ended();
    },
  },
  {
    name: "a command that is too long",
    allow: [tooLongIsRefused("long")],
    play: async (front) => {
      await front.call({ id: "long", type: "unknown_command", padding: "x".repeat(tooLongBytes) });
      await front.call({ type: "get_last_assistant_text" });
    },
  },
  {
    name: "a prompt of a mebibyte",
    play: (front) => front.prompt("x".repeat(1024 * 1024)),
  },
  {
    name: "the end of stdin before anything",
    play: (front) => front.end(),
  },
  {
    name: "the end of stdin while idle",
    play: async (front) => {
      await front.prompt("hello");
      await front.end();
    },
  },
  {
    name: "the end of stdin after a command",
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.end('{"id":"last","type":"get_last_assistant_text"}\n');
    },
  },
  {
    name: "the end of stdin after a command without its line feed",
    play: async (front) => {
      await front.call({ type: "get_state" });
      await front.end('{"id":"last","type":"get_last_assistant_text"}');
    },
  },
  {
    name: "the end of stdin during a run",
    script: held,
    play: async (front) => {
      await startHeld(front);
      await front.end();
    },
  },
  ...(["SIGTERM", "SIGHUP"] as const).flatMap((signal): readonly Scenario[] => [
    {
      name: `${signal} while idle`,
      play: async (front) => {
        await front.call({ type: "get_state" });
        await front.kill(signal);
      },
    },
    {
      name: `${signal} during a run`,
      script: held,
      play: async (front) => {
        await startHeld(front);
        await front.kill(signal);
      },
    },
  ]),
];

async function startHeld(front: FrontEnd): Promise<void> {
  await front.call({ type: "prompt", message: "hello" });
  await front.streamed("one");
}
