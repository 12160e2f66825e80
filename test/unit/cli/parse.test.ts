import { describe, expect, test } from "vitest";
import { UsageError } from "../../../cli/errors.ts";
import { parseLine, wantsJson } from "../../../cli/parse.ts";

function refusal(...args: readonly string[]): UsageError {
  try {
    parseLine(args);
  } catch (error) {
    if (error instanceof UsageError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("a command line", () => {
  test("returns the command's options and arguments, in any order", () => {
    expect(parseLine(["push", "last", "--wait", "delivered", "done", "at last", "--no-trigger"])).toMatchObject({
      kind: "command",
      name: "push",
      options: { wait: "delivered", "no-trigger": true },
      arguments: ["last", "done", "at last"],
    });
  });

  test("treats words after -- as text", () => {
    expect(parseLine(["prompt", "last", "--", "--json", "-x"])).toMatchObject({
      arguments: ["last", "--json", "-x"],
      options: {},
    });
  });

  test.each([
    [["--version"], {}, ["--version"]],
    [["--pi", "/a", "--config=b", "-p", "--pi", "x"], { pi: "/a", config: "b" }, ["-p", "--pi", "x"]],
    [["auth", "--json", "--", "-h"], {}, ["auth", "--json", "--", "-h"]],
    [["--state-dir", "d", "--", "--help", "--"], { "state-dir": "d" }, ["--help", "--"]],
    [["--"], {}, []],
    [[], {}, []],
  ] as const)("passes pi its own words: %j", (words, options, passed) => {
    expect(parseLine(["pi", ...words])).toEqual({ kind: "command", name: "pi", options, arguments: passed });
  });

  test("shows the help of pi-rpcd pi, and refuses an option without its value", () => {
    expect(parseLine(["pi", "--help"])).toMatchObject({ kind: "help", command: "pi" });
    expect(refusal("pi", "--pi").message).toContain("--pi");
  });

  test("accepts a single dash as an argument", () => {
    expect(parseLine(["prompt", "last", "-"])).toMatchObject({ arguments: ["last", "-"] });
  });

  test.each([
    [["--version"], { kind: "version" }],
    [["-V"], { kind: "version" }],
    [["__complete", "rm", "--"], { kind: "complete", words: ["rm", "--"] }],
    [["--help"], { kind: "help", command: undefined }],
    [["-h"], { kind: "help", command: undefined }],
    [["help"], { kind: "help", command: undefined }],
    [[], { kind: "help", command: undefined }],
    [["help", "push"], { kind: "help", command: "push" }],
    [["push", "--help"], { kind: "help", command: "push" }],
    [["push", "-h"], { kind: "help", command: "push" }],
    [["help", "--json"], { kind: "help", json: true }],
  ])("%j asks for help or the version, and misses no argument for it", (args, expected) => {
    expect(parseLine(args)).toMatchObject(expected);
  });

  test.each([
    [["frobnicate"], /^Unknown command "frobnicate"\.$/],
    [["constructor"], /^Unknown command "constructor"\.$/],
    [["steer", "", "hi"], /^SESSION is empty\.$/],
    [["export", "last", ""], /^FILE is empty\.$/],
    [["promt"], /^Unknown command "promt"\. Did you mean prompt\?$/],
    [["lss"], /Did you mean ls\?/],
    [["follow_up"], /Did you mean follow-up\?/],
    [["x".repeat(10_000)], /Unknown command/],
    [["--state-dir", "/x", "ls"], /command comes before its options/],
    [["help", "frobnicate"], /Unknown command "frobnicate"/],
    [["ls", "--frob"], /^ls has no option --frob\.$/],
    [["ls", "--jsn"], /^ls has no option --jsn\. Did you mean --json\?$/],
    [["prompt", "last", "--no-wiat", "x"], /Did you mean --no-wait\? Put a text that begins with - after --\./],
    [["ls", "-x"], /ls has no option -x/],
    [["ls", "extra"], /too many arguments: "extra"/],
    [["push"], /^SESSION is missing\. `last` is the newest session\.$/],
    [["rename", "last"], /^NAME is missing\.$/],
    [["new", "hello"], /too many arguments: "hello"\. A session's name is an option: --name hello$/],
    [["prompt", "last"], /TEXT is missing/],
    [["start", "--port"], /--port/],
    [["start", "--foreground=yes"], /--foreground/],
    [["push", "last", "x", "--as", "now"], /--as must be one of steer, followUp, nextTurn, not "now"/],
    [["new", "--thinking", "hard"], /--thinking must be one of/],
    [["prompt", "last", "--if-running", "follow-up", "x"], /not "follow-up"\. Did you mean followUp\?/],
    [["delivery", "shw", "d1"], /ACTION must be one of show, cancel, resend, not "shw"\. Did you mean show\?/],
  ])("%j is refused with a sentence", (args, sentence) => {
    expect(refusal(...args).message).toMatch(sentence);
  });

  test("that is wrong names the command whose help says more", () => {
    expect(refusal("ls", "--frob").command).toBe("ls");
    expect(refusal("frobnicate").command).toBeUndefined();
  });

  test("requests JSON only before --", () => {
    expect(wantsJson(["ls", "--json"])).toBe(true);
    expect(wantsJson(["prompt", "last", "--", "--json"])).toBe(false);
  });
});
