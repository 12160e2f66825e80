import { describe, expect, test } from "vitest";
import { memoryOutput } from "./memory-output.ts";

describe("colours", () => {
  test("are used on a terminal", () => {
    const { output, stdout } = memoryOutput({ isTerminal: true });
    output.print(output.paint("red", "no"));
    output.write(output.paint("red", "no"));
    expect(stdout()).toBe("\u001b[31mno\u001b[39m\n\u001b[31mno\u001b[39m");
  });

  test("are not used in a pipe", () => {
    expect(memoryOutput().output.paint("red", "no")).toBe("no");
  });

  test.each([{ NO_COLOR: "1" }, { TERM: "dumb" }])("are not used with %j", (env) => {
    expect(memoryOutput({ isTerminal: true, env }).output.paint("red", "no")).toBe("no");
  });

  test("are used with an empty NO_COLOR, as its convention says", () => {
    expect(memoryOutput({ isTerminal: true, env: { NO_COLOR: "" } }).output.paint("red", "no")).not.toBe("no");
  });
});

test("a line stays one line without control sequences, except its own colours", () => {
  const { output, stdout, stderr } = memoryOutput({ isTerminal: true });
  const text = "a\u001b[2J\u001b[31m\u009b\u202eb\r\n  c";
  output.print(`${output.paint("red", text)} ${text}`);
  output.aside(text);
  expect(stdout()).toBe("\u001b[31ma[2J[31mb | c\u001b[39m a[2J[31mb | c\n");
  expect(stderr()).toBe("a[2J[31mb | c\n");
});

describe("a note", () => {
  test("is a line on stderr, or an object with --json", () => {
    const plain = memoryOutput();
    plain.output.note("daemon_started", "one was\nstarted");
    expect(plain.stderr()).toBe("pi-rpcd: one was | started\n");
    const json = memoryOutput({ json: true });
    json.output.note("daemon_started", "one was started");
    expect(JSON.parse(json.stderr())).toEqual({ note: { name: "daemon_started", message: "one was started" } });
    expect(json.stdout()).toBe("");
  });
});

test("a document keeps its value, and cannot control the terminal that shows it", () => {
  const value = { "k\u009b": "\u001b[2J\u009b31m\u007f\u0085\u2028\u2029\u202e\u2066\u200f\u061cé😀" };
  const json = memoryOutput({ json: true });
  json.output.document(value);
  json.output.note("n", value["k\u009b"]);
  json.output.error(new Error(value["k\u009b"]));
  expect(JSON.parse(json.stdout())).toEqual(value);
  expect(json.stdout() + json.stderr()).not.toMatch(/[^\n -~é😀]/u);
  expect(json.stderr()).toContain("\\u009b31m");
});

test("nothing is shortened in a pipe", () => {
  expect(memoryOutput({ columns: 10 }).output.columns).toBeUndefined();
  expect(memoryOutput({ columns: 10, isTerminal: true }).output.columns).toBe(10);
});
