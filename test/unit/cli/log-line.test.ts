import { describe, expect, test } from "vitest";
import { logLine, readableLines } from "../../../cli/log-line.ts";
import { createLog } from "../../../server/log.ts";
import { memoryOutput } from "./memory-output.ts";

const plain = { paint: (_style: string, text: string) => text };

describe("a line of the log, as people read it,", () => {
  test("has the time, the level, the message and its facts, and no process id", () => {
    const line = JSON.stringify({
      level: 40,
      time: 0,
      pid: 7,
      hostname: "h",
      sessionId: "s-1",
      generation: 2,
      msg: "m",
    });
    expect(logLine(line, plain)).toBe("1970-01-01T00:00:00.000Z WARN  m sessionId=s-1 generation=2");
  });

  test("shows an error by its message, and quotes texts with spaces", () => {
    const line = JSON.stringify({
      level: 50,
      time: 0,
      msg: "m",
      err: { message: "a b", stack: "s" },
      why: "c d",
      n: null,
    });
    expect(logLine(line, plain)).toBe('1970-01-01T00:00:00.000Z ERROR m err="a b" why="c d" n=null');
  });

  test.each([
    ["no JSON \u001b[2J", "no JSON [2J"],
    ['["a"]', '["a"]'],
    ["null", "null"],
    ['{"level":30}', '{"level":30}'],
  ])("stays as it is where it is none, and orders a terminal nothing: %j", (line, shown) => {
    expect(logLine(line, plain).trim()).toBe(shown);
  });

  test("cannot control a terminal by its content", () => {
    const line = JSON.stringify({ level: 30, time: 0, msg: "a\u001b[2J\nb", "k\u0007": "v\u001b]0;x\u0007" });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for them
    expect(logLine(line, plain)).not.toMatch(/[\u0000-\u001f\u007f]/);
  });
});

test("cannot control a terminal by its level or its time, which may be invalid", () => {
  const line = JSON.stringify({ level: "\u001b[2J", time: "\u009b0m\n\u0007", msg: "m" });
  expect(logLine(line, plain)).toBe("0m [2J m");
  expect(logLine('{"level":30,"time":1e99,"msg":"m"}', plain)).toBe("1e+99 INFO  m");
});

describe("the log of a daemon in the foreground", () => {
  test("is readable on a terminal, with colours unless they are disabled", () => {
    const { output, stderr, stdout } = memoryOutput({ isTerminal: true });
    const log = createLog({ level: "info", lines: readableLines(output) });
    log.child({ sessionId: "s-1" }).info({ generation: 1 }, "said");
    log.debug("not said");
    expect(stderr()).toMatch(/INFO .* said .*sessionId=s-1.*generation=1.*\n$/);
    expect(stderr().split("\n")).toHaveLength(2);
    expect(stderr()).toContain("\u001b[");
    expect(stdout()).toBe("");
    const uncoloured = memoryOutput({ isTerminal: true, env: { NO_COLOR: "1" } });
    readableLines(uncoloured.output)?.write('{"level":30,"time":0,"msg":"said"}\n');
    expect(uncoloured.stderr()).toBe("1970-01-01T00:00:00.000Z INFO  said\n");
  });

  test.each([{ json: true, isTerminal: true }, { isTerminal: false }])(
    "stays JSON lines for programs: %j",
    (options) => {
      expect(readableLines(memoryOutput(options).output)).toBeUndefined();
    },
  );
});
