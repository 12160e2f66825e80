import { expect, test } from "vitest";
import { type KeyAction, LineEditor } from "../../../../cli/attach/line-editor.ts";

function typed(editor: LineEditor, text: string): KeyAction | undefined {
  let asked: KeyAction | undefined;
  for (const character of text) asked = editor.press(character, { name: character === "\r" ? "return" : character });
  return asked;
}

function control(editor: LineEditor, name: string): KeyAction | undefined {
  return editor.press("\u0001", { name, ctrl: true });
}

test("a line is the typed text, and the next one begins empty", () => {
  const editor = new LineEditor();
  expect(typed(editor, "hello\r")).toEqual({ kind: "line", text: "hello" });
  expect(editor.text).toBe("");
});

test("the usual keys move and erase", () => {
  const editor = new LineEditor();
  typed(editor, "one two");
  control(editor, "w");
  typed(editor, "three");
  control(editor, "a");
  typed(editor, ">");
  editor.press(undefined, { name: "right" });
  editor.press(undefined, { name: "delete" });
  control(editor, "e");
  editor.press("\u007f", { name: "backspace" });
  expect(editor.text).toBe(">oe thre");
  editor.press(undefined, { name: "left" });
  control(editor, "k");
  expect(editor.text).toBe(">oe thr");
  control(editor, "u");
  expect(editor.text).toBe("");
});

test("a paste with line breaks is one line, and Alt-Enter makes one too", () => {
  const editor = new LineEditor();
  editor.press(undefined, { name: "paste-start" });
  for (const [text, name] of [
    ["a", "a"],
    ["\r", "return"],
    ["b", "b"],
    ["\u0003", "c"],
  ] as const)
    editor.press(text, { name });
  editor.press(undefined, { name: "paste-end" });
  editor.press("\r", { name: "return", meta: true });
  typed(editor, "c");
  expect(editor.view(40).text).toBe("a⏎b⏎c");
  expect(typed(editor, "\r")).toEqual({ kind: "line", text: "a\nb\nc" });
});

test("earlier lines are recalled, and then the unfinished one", () => {
  const editor = new LineEditor();
  typed(editor, "first\rsecond\rdraft");
  const seen = ["up", "up", "up", "down", "down", "down"].map((name) => {
    editor.press(undefined, { name });
    return editor.text;
  });
  expect(seen).toEqual(["second", "first", "first", "second", "draft", "draft"]);
});

test("Ctrl-C interrupts; Ctrl-D ends an empty line, and erases in another", () => {
  const editor = new LineEditor();
  expect(control(editor, "d")).toEqual({ kind: "end" });
  typed(editor, "ab");
  control(editor, "a");
  expect(control(editor, "d")).toBeUndefined();
  expect(editor.text).toBe("b");
  expect(control(editor, "c")).toEqual({ kind: "interrupt" });
});

test("a line that is longer than the window shows the part with the cursor", () => {
  const editor = new LineEditor();
  typed(editor, "0123456789");
  expect(editor.view(8)).toEqual({ label: "> ", text: "56789", column: 7 });
  control(editor, "a");
  expect(editor.view(8)).toEqual({ label: "> ", text: "012345", column: 2 });
});

test("keys without a printable character add nothing to the line", () => {
  const editor = new LineEditor();
  for (const [text, name] of [
    ["\u001b[15~", "f5"],
    ["\u001b", "escape"],
    [undefined, undefined],
  ] as const) {
    editor.press(text, { name });
  }
  expect(editor.text).toBe("");
});

test("set or pasted text has no control characters, and each kind of line break becomes one", () => {
  const hostile = "a\u001b]52;c;x\u0007b\u009b2Jc\u0003\u202ed\u2066e\u200ff\r\ng\rh\u2028i\u2029j\tk";
  const plain = "a]52;c;xb2Jcdef\ng\nh\ni\nj\tk";
  const editor = new LineEditor();
  editor.set(hostile);
  expect(editor.text).toBe(plain);
  expect(editor.view(60).text).toBe("a]52;c;xb2Jcdef⏎g⏎h⏎i⏎j k");
  editor.set("");
  editor.press(undefined, { name: "paste-start" });
  editor.press(hostile, {});
  expect(editor.text).toBe(plain);
});
