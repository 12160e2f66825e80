import { PassThrough, Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { messageText } from "../../../cli/message-text.ts";
import { callersDirectory, withoutScript } from "../../../cli/npm.ts";
import { chooseSession } from "../../../cli/session-argument.ts";
import { jsonObject, labels, list, port, seconds } from "../../../cli/values.ts";

const given = { option: "it", command: "push" };

describe("SESSION", () => {
  const sessions = ["0199c2-newest", "0199c2-older", "0198aa-oldest"].map((sessionId) => ({ sessionId }));

  test.each([
    ["last", "0199c2-newest"],
    ["0199c2-older", "0199c2-older"],
    ["0198", "0198aa-oldest"],
    ["oldest", "0198aa-oldest"],
    ["0199c2-n", "0199c2-newest"],
  ])("%s is %s", (word, id) => {
    expect(chooseSession(sessions, word)).toBe(id);
  });

  test("that matches several sessions is refused with their ids", () => {
    expect(() => chooseSession(sessions, "0199c2")).toThrow(/0199c2-newest, 0199c2-older: give more/);
  });

  test("shorter than four characters is refused though only one session matches", () => {
    expect(() => chooseSession(sessions, "est")).toThrow(/too short/);
  });

  test("that is a complete id is accepted, whatever its length and beginning", () => {
    expect(chooseSession([{ sessionId: "ab" }, { sessionId: "abc" }], "ab")).toBe("ab");
  });

  test.each(["nope", "last"])("%s without a session gives advice", (word) => {
    expect(() => chooseSession([], word)).toThrow(/pi-rpcd new/);
  });
});

describe("TEXT", () => {
  const signal = new AbortController().signal;
  const read = (words: readonly string[], stdin: Readable): Promise<string> =>
    messageText({ command: "push", words, stdin, signal });

  test("consists of the words of the command line", async () => {
    expect(await read(["the", "build  is", "green"], new PassThrough())).toBe("the build  is green");
  });

  test.each([[["-"]], [[]]])("%j is stdin, without the line break at its end", async (words) => {
    expect(await read(words, Readable.from([Buffer.from("one\ntw"), Buffer.from("o\n")]))).toBe("one\ntwo");
  });

  test("keeps characters whole that are split between two chunks", async () => {
    const bytes = Buffer.from("é");
    expect(await read(["-"], Readable.from([bytes.subarray(0, 1), bytes.subarray(1)]))).toBe("é");
  });

  test("that is empty is refused", async () => {
    await expect(read(["-"], Readable.from([]))).rejects.toThrow(/empty/);
    await expect(read([" "], new PassThrough())).rejects.toThrow(/empty/);
  });

  test("is not awaited at a terminal", async () => {
    await expect(read([], Object.assign(new PassThrough(), { isTTY: true }))).rejects.toThrow(/TEXT is missing/);
  });

  test("is no longer awaited when the signal aborts", async () => {
    const interrupt = new AbortController();
    const text = messageText({ command: "push", words: ["-"], stdin: new PassThrough(), signal: interrupt.signal });
    interrupt.abort(new Error("interrupted"));
    await expect(text).rejects.toThrow("interrupted");
  });
});

describe("a value", () => {
  test("is a port from 0 to 65535", () => {
    expect(port("0", given)).toBe(0);
    expect(port("65535", given)).toBe(65_535);
    for (const wrong of ["65536", "-1", "1e3", "", "80 "]) expect(() => port(wrong, given)).toThrow(/--it takes/);
  });

  test("is a time in seconds", () => {
    expect(seconds("1.5", given)).toBe(1_500);
    expect(seconds("0", given)).toBe(0);
    for (const wrong of ["-1", "soon", "", "99999999"]) expect(() => seconds(wrong, given)).toThrow(/--it takes/);
  });

  test("is a list of names", () => {
    expect(list("read, grep", given)).toEqual(["read", "grep"]);
    for (const wrong of ["", "read,,grep", "read,"]) expect(() => list(wrong, given)).toThrow(/commas/);
  });

  test("is labels, each with an optional text", () => {
    expect(labels("team=a, draft,note=x=y", given)).toEqual({ team: "a", draft: "", note: "x=y" });
    expect(() => labels("team=a,", given)).toThrow(/commas/);
  });

  test("is a JSON object", () => {
    expect(jsonObject('{"a":1}', given)).toEqual({ a: 1 });
    for (const wrong of ["[]", "null", "1", "{a:1}"]) expect(() => jsonObject(wrong, given)).toThrow(/--it takes/);
  });
});

describe("npm", () => {
  test("reports the caller's directory only in its own script", () => {
    expect(callersDirectory({ npm_lifecycle_event: "pi-rpcd", INIT_CWD: "/home/me" })).toBe("/home/me");
    expect(callersDirectory({ npm_lifecycle_event: "test", INIT_CWD: "/home/me" })).toBeUndefined();
    expect(callersDirectory({ INIT_CWD: "/home/me" })).toBeUndefined();
  });

  test("leaves no trace of its script in the daemon's environment", () => {
    const env = {
      npm_lifecycle_event: "pi-rpcd",
      npm_lifecycle_script: "node",
      npm_package_name: "pi-rpcd",
      npm_command: "run",
      INIT_CWD: "/home/me",
      npm_config_registry: "https://registry.example",
      PATH: "/bin",
    };
    expect(withoutScript(env)).toEqual({ npm_config_registry: "https://registry.example", PATH: "/bin" });
  });
});
