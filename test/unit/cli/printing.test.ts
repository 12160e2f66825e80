import { describe, expect, test } from "vitest";
import { DemoPrinter } from "../../../cli/demo/demo-printer.ts";
import { RunPrinter, toolLine } from "../../../cli/run-printer.ts";
import type { PiEvent } from "../../../client/pi-events.ts";
import { memoryOutput } from "./memory-output.ts";

function delta(text: string): PiEvent {
  return { type: "message_update", assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: text } };
}

describe("a run", () => {
  test("is printed as its text on stdout and a line for each tool call on stderr", () => {
    const { output, stdout, stderr } = memoryOutput();
    const printer = new RunPrinter(output);
    printer.show(delta("I look "));
    printer.show(delta("first."));
    printer.show({ type: "message_end" });
    printer.show({ type: "tool_execution_start", toolName: "bash", args: { command: "ls\n-l" } });
    printer.show({ type: "tool_execution_end", toolName: "bash", isError: true });
    printer.show(delta("Done.\n"));
    printer.endLine();
    expect(stdout()).toBe("I look first.\nDone.\n");
    expect(stderr()).toBe("[bash] ls | -l\n[bash] failed\n");
  });

  test("shows what extensions say on stderr, and each status once", () => {
    const { output, stdout, stderr } = memoryOutput();
    const printer = new RunPrinter(output);
    const ui = (fields: object): PiEvent => ({ type: "extension_ui_request", ...fields });
    const status = (statusText?: string): PiEvent => ui({ method: "setStatus", statusKey: "ci", statusText });
    printer.show(delta("Wait"));
    printer.show(ui({ method: "notify", message: "two\nlines", notifyType: "warning" }));
    for (const text of ["\u001b[32mgreen\u001b[39m", "\u001b[32mgreen\u001b[39m", undefined, "red\u001b]0;t\u0007"]) {
      printer.show(status(text));
    }
    printer.show(ui({ method: "setWidget", widgetKey: "x", widgetLines: ["a"] }));
    printer.show(ui({ method: "notify", message: 7 }));
    expect(stdout()).toBe("Wait\n");
    expect(stderr()).toBe("two\nlines\nci: green\nci: red\n");
  });

  test("cannot move the cursor of a terminal, and is unchanged in a pipe", () => {
    const terminal = memoryOutput({ isTerminal: true });
    new RunPrinter(terminal.output).show(delta("a\u001b[2Jb"));
    expect(terminal.stdout()).toBe("a[2Jb");
    const pipe = memoryOutput();
    new RunPrinter(pipe.output).show(delta("a\u001b[2Jb"));
    expect(pipe.stdout()).toBe("a\u001b[2Jb");
  });
});

test.each([
  ["bash", { command: "npm test" }, "[bash] npm test"],
  ["read", { path: "a.ts", limit: 3 }, "[read] a.ts"],
  ["odd", { depth: 2 }, '[odd] {"depth":2}'],
  ["bare", {}, "[bare]"],
  ["none", undefined, "[none]"],
])("a call of %s with %j is %s", (name, args, line) => {
  expect(toolLine(name, args)).toBe(line);
});

describe("the demo's report", () => {
  test("wraps the model's words without blanks at the ends of lines", () => {
    const { output, stdout } = memoryOutput({ isTerminal: true, columns: 56, env: { NO_COLOR: "1" } });
    const printer = new DemoPrinter(output);
    for (const word of ["one ", "two ", "three ", "four ", "fi", "ve ", "six ", "seven ", "eight"]) printer.said(word);
    printer.endOfText();
    const lines = stdout().split("\n");
    expect(lines.map((line) => line.slice(23))).toEqual(["one two three four five six seven", "eight", ""]);
    expect(stdout()).not.toMatch(/ $/m);
  });

  test("begins a new line for events while the model speaks", () => {
    const { output, stdout } = memoryOutput();
    const printer = new DemoPrinter(output);
    printer.said("half a ");
    printer.happened("tool", "has started", {});
    expect(stdout()).toMatch(/model +half a\n +\d+\.\d\d s +tool +has started\n$/);
  });

  test("is JSON lines with --json", () => {
    const { output, stdout } = memoryOutput({ json: true });
    const printer = new DemoPrinter(output);
    printer.title("demo", "");
    printer.said("word");
    printer.happened("tool", "has started", { phase: "started" });
    printer.check({ name: "it holds", holds: true, found: "it" });
    printer.end("all", { ok: true });
    const lines = stdout()
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { readonly kind: string });
    expect(lines.map(({ kind }) => kind)).toEqual(["text", "tool", "check", "end"]);
  });
});
