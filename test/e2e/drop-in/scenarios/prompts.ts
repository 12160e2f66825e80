import { answer, call, cut, hold, reset, status, thinking } from "../../../../provider/reply.ts";
import type { Scenario } from "../scenario.ts";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Prompts, answers, tools and failures of the provider. */
export const prompts: readonly Scenario[] = [
  {
    name: "a prompt with a streamed answer",
    script: () => [answer("Hel", "lo ", "world")],
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "get_state" });
    },
  },
  {
    name: "thinking and text",
    args: ["--model", "scripted/thinker", "--thinking", "high"],
    script: () => [answer(thinking("Let me "), thinking("see"), "It is ", "so")],
    play: (front) => front.prompt("why"),
  },
  {
    name: "an empty answer, and an answer that reaches its length",
    script: () => [answer(), { ...answer("too long"), stop: "length" }],
    play: async (front) => {
      await front.prompt("one");
      await front.prompt("two");
    },
  },
  {
    name: "the read tool, also with a missing file",
    files: { "cwd/notes.txt": "first line\nsecond line\n" },
    script: () => [
      answer("I look.", call("read", { path: "notes.txt" }, "call_1")),
      answer(call("read", { path: "missing.txt" }, "call_2")),
      "done",
    ],
    play: (front) => front.prompt("read it"),
  },
  {
    name: "the edit tool, also without a match",
    files: { "cwd/notes.txt": "first line\nsecond line\n" },
    script: () => [
      answer(call("edit", { path: "notes.txt", edits: [{ oldText: "first", newText: "1st" }] }, "call_1")),
      answer(call("edit", { path: "notes.txt", edits: [{ oldText: "none", newText: "x" }] }, "call_2")),
      "done",
    ],
    play: (front) => front.prompt("edit it"),
  },
  {
    name: "the write tool",
    script: () => [answer(call("write", { path: "new/file.txt", content: "content\n" }, "call_1")), "done"],
    play: (front) => front.prompt("write it"),
  },
  {
    name: "the bash tool, also with a failure",
    script: () => [
      answer(call("bash", { command: "echo out" }, "call_1")),
      answer(call("bash", { command: "echo wrong; exit 3" }, "call_2")),
      "done",
    ],
    play: (front) => front.prompt("run it"),
  },
  {
    name: "an edit, and a command that ends after it, in one answer",
    files: { "cwd/a.txt": "before\n" },
    script: () => [
      answer(
        call("edit", { path: "a.txt", edits: [{ oldText: "before", newText: "after" }] }, "call_1"),
        call("bash", { command: "until test -e go; do sleep 0.01; done; cat a.txt" }, "call_2"),
      ),
      "done",
    ],
    play: async (front) => {
      await front.call({ type: "prompt", message: "do both" });
      await front.until((record) => record.type === "tool_execution_end" && record["toolName"] === "edit", "its end");
      front.world.write("cwd/go", "");
      await front.settled();
    },
  },
  {
    name: "an unknown tool, and arguments that do not fit",
    script: () => [answer(call("fly", { to: "the moon" }, "call_1")), answer(call("read", {}, "call_2")), "done"],
    play: (front) => front.prompt("try it"),
  },
  {
    name: "two prompts in sequence",
    script: () => ["one", "two"],
    play: async (front) => {
      await front.prompt("first");
      await front.prompt("second");
      await front.call({ type: "get_messages" });
    },
  },
  {
    name: "prompts with an image, with an empty text, and with special characters",
    play: async (front) => {
      await front.prompt("look", { images: [{ type: "image", data: pixel, mimeType: "image/png" }] });
      await front.prompt("");
      await front.prompt("a\u2028b\u0000c 😀\r\n\td");
    },
  },
  {
    name: "a prompt template of the user, one of the command line, and a skill",
    args: ["--prompt-template", "greet.md"],
    files: {
      "agent/prompts/check.md": "---\ndescription: Checks a file\n---\nCheck $1 for $2.",
      "cwd/greet.md": "Greet $ARGUMENTS in French.",
      "agent/skills/brew/SKILL.md": "---\nname: brew\ndescription: Makes tea\n---\nBoil water.\n",
    },
    play: async (front) => {
      await front.call({ type: "get_commands" });
      await front.prompt("/check a.txt errors");
      await front.prompt("/greet Ada and Bob");
      await front.prompt("/skill:brew a pot");
      await front.prompt("/no-such-command x");
    },
  },
  {
    name: "an error of the provider that is not retried",
    script: () => [status(400, { message: "no such thing" }), "better"],
    play: async (front) => {
      await front.prompt("hello");
      await front.prompt("again");
    },
  },
  {
    name: "an error of the provider that is retried",
    script: () => [status(529), status(503), "at last"],
    play: (front) => front.prompt("hello"),
  },
  {
    name: "an answer that breaks off and is retried",
    script: () => [answer("half", cut()), "whole"],
    play: (front) => front.prompt("hello"),
  },
  {
    name: "retries until pi gives up, and none",
    script: () => [status(529), status(529), status(529), status(529), status(529)],
    play: async (front) => {
      await front.prompt("hello");
      await front.call({ type: "set_auto_retry", enabled: false });
      await front.prompt("again");
    },
  },
  {
    name: "abort_retry in the pause before a retry",
    settings: { retry: { enabled: true, maxRetries: 3, baseDelayMs: 3_600_000, maxAgentDelayMs: 3_600_000 } },
    script: () => [status(529)],
    play: async (front) => {
      await front.call({ type: "prompt", message: "hello" });
      await front.until("auto_retry_start");
      await front.call({ type: "abort_retry" });
      await front.settled();
    },
  },
  {
    name: "abort in the pause before a retry",
    settings: { retry: { enabled: true, maxRetries: 3, baseDelayMs: 3_600_000, maxAgentDelayMs: 3_600_000 } },
    script: () => [status(529)],
    play: async (front) => {
      await front.call({ type: "prompt", message: "hello" });
      await front.until("auto_retry_start");
      await front.call({ type: "abort" });
    },
  },
  {
    name: "a connection that breaks before any answer",
    script: () => [reset(), "at last"],
    play: (front) => front.prompt("hello"),
  },
  {
    name: "many deltas, with commands between them",
    script: (gates) => [
      answer(...many("a"), "first", hold(gates.named("one")), ...many("b"), "second", hold(gates.named("two")), "end"),
    ],
    play: async (front) => {
      await front.call({ type: "prompt", message: "hello" });
      await front.streamed("first");
      await front.call({ type: "get_state" });
      front.gate("one").open();
      await front.streamed("second");
      await front.call({ type: "get_messages" });
      await front.call({ type: "get_last_assistant_text" });
      front.gate("two").open();
      await front.settled();
    },
  },
];

function many(text: string): readonly string[] {
  return Array.from({ length: 300 }, (_, index) => `${text}${index} `);
}
