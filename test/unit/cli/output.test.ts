import { describe, expect, test } from "vitest";
import { memoryOutput } from "./memory-output.ts";

describe("colours", () => {
  test("are there on a terminal", () => {
    expect(memoryOutput({ isTerminal: true }).output.paint("red", "no")).toBe("\u001b[31mno\u001b[39m");
  });

  test("are not there in a pipe", () => {
    expect(memoryOutput().output.paint("red", "no")).toBe("no");
  });

  test.each([{ NO_COLOR: "1" }, { TERM: "dumb" }])("are not there with %j", (env) => {
    expect(memoryOutput({ isTerminal: true, env }).output.paint("red", "no")).toBe("no");
  });

  test("are there with an empty NO_COLOR, as its convention says", () => {
    expect(memoryOutput({ isTerminal: true, env: { NO_COLOR: "" } }).output.paint("red", "no")).toContain("\u001b[");
  });
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

test("nothing is cut in a pipe", () => {
  expect(memoryOutput({ columns: 10 }).output.columns).toBeUndefined();
  expect(memoryOutput({ columns: 10, isTerminal: true }).output.columns).toBe(10);
});
