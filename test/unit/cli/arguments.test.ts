import { PassThrough, Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { CommandError } from "../../../cli/errors.ts";
import { homeRelative, shortId } from "../../../cli/format.ts";
import { messageText } from "../../../cli/message-text.ts";
import { chooseModel } from "../../../cli/model.ts";
import { callersDirectory, withoutScript } from "../../../cli/npm.ts";
import { chooseId, chooseSession } from "../../../cli/session-argument.ts";
import { jsonObject, labels, list, port, seconds } from "../../../cli/values.ts";
import { memoryOutput } from "./memory-output.ts";

const given = { option: "it", command: "push" };

describe("SESSION", () => {
  const newest = "019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9c11";
  const older = "019ab2c4-7c1e-7f6b-8a55-0d6f2f1be55e";
  const oldest = "019aa000-0000-7000-8000-00000000beef";
  const sessions = [
    { sessionId: newest, name: "review of the parser", cwd: "/home/ada/api" },
    { sessionId: older, name: "beef", cwd: "/home/ada/web-shop" },
    { sessionId: oldest, cwd: "/srv/parser" },
  ];

  test.each([
    ["last", newest],
    [older, older],
    ["019aa", oldest],
    ["019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9", newest],
    ["2f1b9c11", newest],
    ["e55e", older],
    ["review of the parser", newest],
    ["review", newest],
    ["api", newest],
    ["SHOP", older],
    ["parser", oldest],
  ])("%s is %s", (word, id) => {
    expect(chooseSession(sessions, word)).toBe(id);
  });

  test.each(["beef", "019aa"])("that is a name, and a part of another session's id, is ambiguous: %s", (word) => {
    const named = [{ sessionId: newest, name: word, cwd: "/a" }, ...sessions.slice(1)];
    for (const choosing of [{}, { parts: false }]) {
      const { kind, data } = refusal(() => chooseSession(named, word, choosing));
      expect([kind, data]).toEqual([
        "session_ambiguous",
        {
          matching: expect.arrayContaining([newest, oldest].map((sessionId) => expect.objectContaining({ sessionId }))),
        },
      ]);
    }
  });

  test("that is the name and a part of the id of one session means it", () => {
    const named = [...sessions.slice(0, 2), { sessionId: oldest, name: "0000beef", cwd: "/a" }];
    expect(chooseSession(named, "0000beef")).toBe(oldest);
  });

  test("that is a complete id means that session, although another has the name", () => {
    const named = [{ sessionId: newest, name: oldest, cwd: "/a" }, ...sessions.slice(1)];
    expect(chooseSession(named, oldest)).toBe(oldest);
    expect(chooseSession([...sessions, { sessionId: "last", cwd: "/a" }], "last")).toBe("last");
  });

  test("that is last is ambiguous if an older session has this name", () => {
    const [first = { sessionId: "", cwd: "" }, ...others] = sessions;
    expect(chooseSession([{ ...first, name: "last" }, ...others], "last")).toBe(newest);
    const { kind, lines } = refusal(() =>
      chooseSession([...sessions, { sessionId: "x", name: "last", cwd: "/a" }], "last"),
    );
    expect([kind, lines.map((line) => line.split(" ")[0])]).toEqual(["session_ambiguous", ["2f1b9c11", "x"]]);
  });

  test("that matches several sessions is refused with the ends of their ids, their names and directories", () => {
    expect(refusal(() => chooseSession(sessions, "019ab2c4"))).toMatchObject({
      kind: "session_ambiguous",
      message: '"019ab2c4" matches 2 sessions. Choose one by its id:',
      lines: ["2f1b9c11  review of the parser  /home/ada/api", "2f1be55e  beef                  /home/ada/web-shop"],
      data: { matching: [{ sessionId: newest }, { sessionId: older }] },
    });
    const { output, stderr } = memoryOutput({ isTerminal: true, env: { NO_COLOR: "1" } });
    const hostile = [1, 2].map((n) => ({ sessionId: `same-${n}`, name: `x\u001b[2J\n${n}`, cwd: "/a" }));
    output.error(refusal(() => chooseSession(hostile, "same")));
    expect(stderr().split("\n").slice(1)).toEqual(["  same-1  x[2J | 1  /a", "  same-2  x[2J | 2  /a", ""]);
  });

  test("that matches many sessions lists ten of them and their number", () => {
    const many = Array.from({ length: 25 }, (_, n) => ({ sessionId: `many-${n}`, cwd: "/a" }));
    const { message, lines } = refusal(() => chooseSession(many, "many"));
    expect([message, lines.length, lines.at(-1)]).toEqual([
      '"many" matches 25 sessions. Choose one by its id:',
      11,
      "and 15 more: pi-rpcd ls",
    ]);
  });

  test("is no part of a name where a part would be dangerous", () => {
    for (const part of ["review", "api"]) {
      expect(refusal(() => chooseSession(sessions, part, { parts: false })).kind).toBe("session_not_found");
    }
    expect(refusal(() => chooseSession(sessions, "shop", { parts: false })).lines).toEqual([
      "Did you mean one of these?",
      "2f1be55e  beef  /home/ada/web-shop",
    ]);
    expect(chooseSession(sessions, "e55e", { parts: false })).toBe(older);
    expect(chooseSession(sessions, "2f1b9c11", { parts: false })).toBe(newest);
  });

  test("shorter than four characters is refused though only one session matches", () => {
    for (const word of ["c11", "web"]) expect(() => chooseSession(sessions, word)).toThrow(/too short/);
    expect(() => chooseSession(sessions, "xyz")).toThrow(/matches "xyz"/);
  });

  test("that is a complete id is accepted, whatever its length and beginning", () => {
    const cwd = "/";
    expect(
      chooseSession(
        [
          { sessionId: "ab", cwd },
          { sessionId: "abc", cwd },
        ],
        "ab",
      ),
    ).toBe("ab");
  });

  test.each(["nope", "last"])("%s without a session gives advice", (word) => {
    expect(() => chooseSession([], word)).toThrow(/pi-rpcd new/);
  });
});

function refusal(act: () => unknown): CommandError {
  try {
    act();
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("ID", () => {
  const ids = ["build-318", "build-3181", "019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9c11"];

  test.each([
    ["build-318", "build-318"],
    ["3181", "build-3181"],
    ["2f1b9c11", "019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9c11"],
    ["019ab2", "019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9c11"],
    ["other", undefined],
    ["", undefined],
  ])("%j is %s", (word, id) => {
    expect(chooseId(ids, word, "delivery")).toBe(id);
  });

  test("that matches several, or is too short, is refused with the ids", () => {
    expect(refusal(() => chooseId(ids, "build", "delivery"))).toMatchObject({
      kind: "delivery_ambiguous",
      message: '"build" matches build-318, build-3181: give more characters of the id.',
    });
    expect(refusal(() => chooseId(ids, "11", "dialog")).kind).toBe("dialog_ambiguous");
  });
});

test("tables show the end of a UUID, and any other id unchanged", () => {
  expect(shortId("019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9c11")).toBe("2f1b9c11");
  for (const id of ["build-318", "-", "019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9c11x"]) expect(shortId(id)).toBe(id);
});

test("a directory in the user's own is shown with a tilde", () => {
  expect(homeRelative("/home/ada/api", "/home/ada")).toBe("~/api");
  expect(homeRelative("/home/ada", "/home/ada")).toBe("~");
  for (const home of [undefined, "", "/home/ad"]) expect(homeRelative("/home/ada/api", home)).toBe("/home/ada/api");
});

describe("MODEL", () => {
  const models = [
    "anthropic/claude-sonnet-5",
    "anthropic/claude-haiku-5",
    "openrouter/openai/gpt-6",
    "openai/gpt-6",
  ].map((name) => ({ provider: name.split("/")[0] ?? "", id: name.split("/").slice(1).join("/") }));

  test.each([
    ["anthropic/claude-sonnet-5", "anthropic", "claude-sonnet-5"],
    ["openrouter/openai/gpt-6", "openrouter", "openai/gpt-6"],
    ["gpt-6", "openai", "gpt-6"],
    ["Sonnet", "anthropic", "claude-sonnet-5"],
  ])("%s is %s's %s", (word, provider, id) => {
    expect(chooseModel(models, word)).toEqual({ provider, id });
  });

  test("that matches several models is refused with their names", () => {
    expect(refusal(() => chooseModel(models, "claude"))).toMatchObject({
      kind: "model_ambiguous",
      lines: ["anthropic/claude-sonnet-5", "anthropic/claude-haiku-5"],
    });
  });

  test("that is misspelt is refused with the nearest", () => {
    const { kind, message } = refusal(() => chooseModel(models, "claude-sonet-5"));
    expect([kind, message]).toEqual(["model_not_found", expect.stringContaining("Did you mean claude-sonnet-5?")]);
    expect(refusal(() => chooseModel(models, "zzz")).message).not.toContain("Did you mean");
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
