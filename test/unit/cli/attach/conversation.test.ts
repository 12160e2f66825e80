import { expect, test } from "vitest";
import { Conversation } from "../../../../cli/attach/conversation.ts";
import { LineEditor } from "../../../../cli/attach/line-editor.ts";
import type { Dialog, PromptCall, SessionHandle } from "../../../../client/index.ts";

function stage({ isRunning = false } = {}) {
  const lines: string[] = [];
  const calls: unknown[] = [];
  const view = { isRunning };
  const editor = new LineEditor();
  const session: Pick<SessionHandle, "prompt" | "abort"> = {
    prompt: (text, options) => {
      calls.push([text, options]);
      return Promise.reject(new Error("refused")) as unknown as PromptCall;
    },
    abort: () => {
      calls.push("abort");
      return Promise.resolve({ aborted: true }) as unknown as ReturnType<SessionHandle["abort"]>;
    },
  };
  const canvas = { line: (text: string) => void lines.push(text), redraw: () => {} };
  const conversation = new Conversation({ session, view, canvas, editor, ifRunning: "steer" });
  const type = (text: string): void => {
    for (const character of text) {
      conversation.press(character, { name: character === "\r" ? "return" : character });
    }
  };
  const press = (name: string): void => conversation.press("\u0001", { name, ctrl: true });
  return { lines, calls, view, editor, conversation, type, press };
}

function dialog(more: Partial<Dialog>): Dialog {
  return { dialogId: "dialog-1", title: "Which?", ...more } as Dialog;
}

const never = new AbortController().signal;

test("a line is a prompt, or as --if-running says during a run; a refusal is shown", async () => {
  const { calls, lines, type } = stage();
  type("hello\r");
  type("  \r");
  expect(calls).toEqual([["hello", { ifRunning: "steer" }]]);
  await expect.poll(() => lines).toEqual(["✘ refused (unexpected)"]);
});

test("Ctrl-C aborts the run, and a second one leaves; any key between them resets this", async () => {
  const { calls, lines, press, type, conversation } = stage({ isRunning: true });
  press("c");
  type("x");
  press("c");
  expect(calls).toEqual(["abort", "abort"]);
  press("c");
  await conversation.left;
  expect(lines).toEqual(Array.from({ length: 2 }, () => "aborting the run; Ctrl-C again leaves"));
});

test("Ctrl-D leaves", async () => {
  const { press, conversation, calls } = stage();
  press("d");
  await conversation.left;
  expect(calls).toEqual([]);
});

test("questions are asked one at a time, and the unfinished line returns afterwards", async () => {
  const { type, press, lines, conversation, editor, calls } = stage();
  type("half");
  const options = ["b two", "2"];
  const select = conversation.ask(dialog({ method: "select", options }), never);
  const confirm = conversation.ask(dialog({ method: "confirm", title: "Sure?", message: "No way back." }), never);
  const text = conversation.ask(dialog({ method: "editor", title: "Words", prefill: "some" }), never);
  const dismissed = conversation.ask(dialog({ method: "input", title: "More?" }), never);
  expect(lines).toEqual(["? Which?", "  1) b two", "  2) 2"]);
  expect(editor.label).toBe("1-2? ");
  type("7\r");
  expect(lines.at(-1)).toContain("from 1 to 2");
  type("1\r");
  type("maybe\r");
  type("y\r");
  type(" more\r");
  press("d");
  expect(await Promise.all([select, confirm, text, dismissed])).toEqual([
    { value: "b two" },
    { confirmed: true },
    { value: "some more" },
    { cancelled: true },
  ]);
  expect(editor.text).toBe("half");
  expect(editor.label).toBe("> ");
  expect(calls).toEqual([]);
});

test("a question that ended elsewhere disappears", async () => {
  const { conversation, editor } = stage();
  const elsewhere = new AbortController();
  const asked = conversation.ask(dialog({ method: "confirm" }), elsewhere.signal);
  elsewhere.abort();
  expect(await asked).toBeUndefined();
  expect(await conversation.ask(dialog({ method: "confirm" }), elsewhere.signal)).toBeUndefined();
  expect(editor.label).toBe("> ");
});

test("a question's prefilled text is not an answer before a key is pressed, and loses its control sequences with a notice", async () => {
  const { conversation, editor, lines, type } = stage();
  let isAnswered = false;
  const asked = conversation.ask(
    dialog({ method: "editor", title: "Edit", prefill: "ls\u0003\u001b[2J\u2028" }),
    never,
  );
  void asked.then(() => {
    isAnswered = true;
  });
  expect(editor.text).toBe("ls[2J\n");
  expect(lines).toEqual(["? Edit", "  (control characters were removed from the text)"]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(isAnswered).toBe(false);
  type("\r");
  expect(await asked).toEqual({ value: "ls[2J\n" });
});
