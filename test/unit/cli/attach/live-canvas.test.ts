import { describe, expect, test } from "vitest";
import { LineEditor } from "../../../../cli/attach/line-editor.ts";
import { LiveCanvas } from "../../../../cli/attach/live-canvas.ts";
import { textWidth } from "../../../../cli/attach/width.ts";
import { Output } from "../../../../cli/output.ts";
import { SmallTerminal } from "./small-terminal.ts";

function stage(columns = 30): { terminal: SmallTerminal; canvas: LiveCanvas; editor: LineEditor } {
  const terminal = new SmallTerminal(columns);
  const output = new Output({ stdout: terminal, stderr: terminal, env: { NO_COLOR: "1" }, json: false });
  const editor = new LineEditor();
  return { terminal, editor, canvas: new LiveCanvas(output, editor) };
}

describe("the output above the input line", () => {
  test("grows piece by piece, and the input line stays below it with its cursor", () => {
    const { terminal, canvas, editor } = stage();
    editor.set("typed");
    for (const piece of ["one ", "two", " th", "ree"]) canvas.stream(piece);
    expect(terminal.screen).toEqual(["one two three", "> typed"]);
    expect(terminal.cursor).toEqual({ row: 1, column: 7 });
    canvas.line("[bash] ls");
    canvas.stream("four");
    expect(terminal.screen).toEqual(["one two three", "[bash] ls", "four", "> typed"]);
  });

  test("is broken at words, also when a word arrives in pieces", () => {
    const { terminal, canvas } = stage(20);
    for (const piece of ["aaaa bbbb cccc dd", "ddee", "e ffff"]) canvas.stream(piece);
    expect(terminal.screen).toEqual(["aaaa bbbb cccc", "ddddeee ffff", ">"]);
  });

  test("never exceeds the width, whatever arrives", () => {
    const { terminal, canvas } = stage(24);
    canvas.stream("x".repeat(100));
    canvas.line("a\tb\tc\td\te\tf\tg");
    canvas.stream(`${"語".repeat(30)} e\u0301e\u0301 👍`);
    canvas.line("y".repeat(60));
    for (const row of terminal.screen) expect(textWidth(row)).toBeLessThan(24);
    expect(terminal.screen.join("")).toContain("x".repeat(23));
  });

  test("keeps empty lines, and ends a line once", () => {
    const { terminal, canvas } = stage();
    canvas.stream("one\n\ntwo\n");
    canvas.endLine();
    canvas.endLine();
    canvas.stream("three");
    canvas.endLine();
    expect(terminal.screen).toEqual(["one", "", "two", "three", ">"]);
  });

  test("stays when the input line is removed", () => {
    const { terminal, canvas } = stage();
    canvas.stream("half a");
    canvas.close();
    canvas.line("the end");
    expect(terminal.screen).toEqual(["half a", "the end"]);
  });
});
