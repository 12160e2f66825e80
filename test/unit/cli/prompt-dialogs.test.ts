import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { terminalDialogHandler } from "../../../cli/prompt-dialogs.ts";
import type { Dialog, DialogMethod } from "../../../protocol/dialog.ts";

/** A terminal's two ends: the typed input, and the shown text. */
function desk({ isTerminal = false } = {}) {
  const input = new PassThrough();
  const output = new PassThrough();
  let shown = "";
  let waiting: () => void = () => {};
  output.on("data", (data: Buffer) => {
    shown += data.toString("utf8");
    waiting();
  });
  const until = async (text: string): Promise<void> => {
    while (!shown.includes(text)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting = resolve;
      await promise;
    }
  };
  let begun = 0;
  let ended = 0;
  const before = (): void => {
    begun += 1;
  };
  const ask = terminalDialogHandler({
    input,
    output,
    isTerminal,
    before,
    after: () => (ended += 1),
    onInterrupt: () => {},
  });
  return { input, ask, until, shown: () => shown, begun: () => begun, ended: () => ended };
}

const dialog = (method: DialogMethod, fields: Partial<Dialog> = {}): Dialog => ({
  ...{ dialogId: "d1", sessionId: "s", requestId: "q", generation: 1, state: "open", openedAt: 0, deadline: 1 },
  ...{ method, title: "Which?", ...fields },
});
const open = () => ({ signal: new AbortController().signal });

test("questions are asked one at a time, and an invalid answer is asked for again", async () => {
  const { input, ask, until, shown, begun, ended } = desk();
  const first = ask(dialog("select", { title: "First?\u001b[2J", options: ["one", "two"] }), open());
  const second = ask(dialog("confirm", { title: "Second?" }), open());
  await until("1-2? ");
  expect(shown()).toContain("1) one");
  expect(shown()).not.toContain("\u001b");
  input.write("three\n");
  await until("Type a number");
  input.write("2\n");
  expect(await first).toEqual({ value: "two" });
  await until("Second?");
  await until("y/n? ");
  input.write("y\n");
  expect(await second).toEqual({ confirmed: true });
  expect([begun(), ended()]).toEqual([2, 2]);
});

test("the end of the input dismisses the question", async () => {
  const { input, ask, until } = desk();
  const answer = ask(dialog("input"), open());
  await until("answer: ");
  input.end();
  expect(await answer).toEqual({ cancelled: true });
});

test("a question that ends elsewhere is removed, and the next is asked", async () => {
  const { input, ask, until } = desk();
  const over = new AbortController();
  const first = ask(dialog("confirm"), { signal: over.signal });
  const never = ask(dialog("confirm", { title: "Never shown?" }), { signal: over.signal });
  const second = ask(dialog("input", { title: "Name?" }), open());
  await until("y/n? ");
  over.abort(new Error("The dialog has ended."));
  expect(await first).toBeUndefined();
  expect(await never).toBeUndefined();
  await until("Name?");
  await until("answer: ");
  input.write("Ada\n");
  expect(await second).toEqual({ value: "Ada" });
});

test("a text of several lines is left to other clients, with a hint", async () => {
  const { ask, shown } = desk();
  expect(await ask(dialog("editor", { prefill: "a\nb" }), open())).toBeUndefined();
  expect(shown()).toContain("pi-rpcd dialog answer d1 TEXT");
});

test.each([
  ["rm -rf ~\u2028"],
  ["\u2029"],
  ["x\u0003"],
  ["a\u0004"],
  ["\u001b]52;c;cm0=\u0007"],
  ["\u009b2J"],
  ["\u202ereversed"],
  ["a\u0000b"],
])("a text with control characters is left to other clients, and is not an answer: %j", async (prefill) => {
  for (const isTerminal of [true, false]) {
    const { ask, shown } = desk({ isTerminal });
    expect(await ask(dialog("editor", { prefill }), open())).toBeUndefined();
    expect(shown()).toContain("pi-rpcd dialog answer d1 TEXT");
    expect(shown()).not.toMatch(/[^\n -~]/);
  }
});

test("a text of one line is shown for editing until a key ends it", async () => {
  const { input, ask, until } = desk({ isTerminal: true });
  const answer = ask(dialog("editor", { prefill: "na\tïve" }), open());
  await until("na\tïve");
  input.write("!\r");
  expect(await answer).toEqual({ value: "na\tïve!" });
});
