import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Params, Result } from "../../../protocol/methods.ts";
import { limits } from "../../../server/configuration/limits.ts";
import { excerptOf, Literal } from "../../../server/custody/search/literal.ts";
import { type SearchedSession, Searches, type SearchLimits } from "../../../server/custody/search/searches.ts";

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "search-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

type Found = Result<"transcript/search">;
type SearchParams = Omit<Params<"transcript/search">, "sessionId">;

const timestamp = "2026-01-01T00:00:00.000Z";
const headerOf = (id: string) => ({ type: "session", version: 3, id, timestamp, cwd: "/" });
const entry = (id: string, parentId: string | null, fields: object) => ({
  ...{ type: "message", id, parentId, timestamp },
  ...fields,
});
const user = (id: string, parentId: string | null, content: unknown) =>
  entry(id, parentId, { message: { role: "user", content, timestamp: 1 } });
const textOf = (lines: readonly unknown[]): string =>
  lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");

let sessions = 0;

/** A session with the lines as its file. Later ones are newer. */
function sessionOf(...lines: readonly unknown[]): SearchedSession {
  sessions += 1;
  const sessionId = `s${sessions}`;
  const file = join(directory, `${sessionId}.jsonl`);
  if (lines.length > 0) writeFileSync(file, textOf([headerOf(sessionId), ...lines]));
  return { sessionId, file, createdAt: sessions, isEphemeral: false, hasEntries: false };
}

/** The files that this process has open. */
function openFiles(): string[] {
  return readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)];
    } catch {
      return [];
    }
  });
}

interface With extends SearchParams {
  readonly bounds?: { readonly [name in keyof SearchLimits]?: number };
}

function searched(all: readonly SearchedSession[], { bounds, ...params }: With): Promise<Found> {
  const searches = new Searches({ ...limits.search, ...bounds } as SearchLimits);
  return searches.search(all, params, new AbortController().signal);
}

/** All answers, one after the other. */
async function allOf(all: readonly SearchedSession[], params: With): Promise<Found[]> {
  const answers = [await searched(all, params)];
  for (let before = answers[0]?.before; before !== undefined; before = answers.at(-1)?.before) {
    answers.push(await searched(all, { ...params, before }));
    expect(answers.length).toBeLessThan(100);
  }
  return answers;
}

const idsOf = (answers: readonly Found[]): string[] =>
  answers.flatMap(({ hits }) => hits.map(({ entryId }) => entryId));
const marked = ({ excerpt, matchStart, matchLength }: Found["hits"][number]): string =>
  excerpt.slice(matchStart, matchStart + matchLength);

test("all texts are searched and named, but no keys, names of tools, images and data of extensions", async () => {
  const message = (role: string, content: unknown, more: object = {}) => ({ message: { role, content, ...more } });
  const session = sessionOf(
    user("a", null, [
      { type: "text", text: "needle one" },
      { type: "image", data: "needleneedle", mimeType: "image/png" },
    ]),
    entry("b", "a", message("assistant", [{ type: "thinking", thinking: "a Needle", thinkingSignature: "needle" }])),
    entry("c", "b", message("assistant", [{ type: "text", text: "NEEDLE" }])),
    entry(
      "d",
      "c",
      message("assistant", [
        { type: "toolCall", id: "needle", name: "needle", arguments: { needle: [{ x: ["the needle"] }] } },
      ]),
    ),
    entry("e", "d", message("toolResult", [{ type: "text", text: "result: needle" }], { toolName: "needle" })),
    entry("f", "e", message("bashExecution", undefined, { command: "ls", output: "needle.txt" })),
    entry("g", "f", { type: "custom_message", customType: "n", content: "pushed needle", display: true }),
    entry("h", "g", { type: "compaction", summary: "a needle was found", firstKeptEntryId: "needle" }),
    entry("i", "h", { type: "session_info", name: "The needle" }),
    entry("j", "i", { type: "custom", customType: "needle", data: { needle: "needle" } }),
    entry("k", "j", { type: "custom_message", customType: "n", content: "hidden needle", display: false }),
    entry("l", "k", { type: "custom_message", customType: "pi-rpcd.carrier", content: "needle", display: true }),
    entry("m", "l", message("assistant", [{ type: "toolCall", id: "1", name: "needle", arguments: { needle: 1 } }])),
    entry("n", "m", message("toolResult", [{ type: "image", data: "needle", mimeType: "image/png" }])),
  );
  const { hits, ...rest } = await searched([session], { query: "needle" });
  expect(hits.map(({ entryId, kind }) => `${entryId} ${kind}`)).toEqual([
    "i name",
    "h summary",
    "g custom",
    "f bash",
    "e toolResult",
    "d toolCall",
    "c assistant",
    "b thinking",
    "a user",
  ]);
  expect(hits.every((hit) => marked(hit).toLowerCase() === "needle" && hit.at === Date.parse(timestamp))).toBe(true);
  expect(rest).toEqual({ sessions: 1, sessionsLeft: 0, bytes: expect.any(Number) });
});

test("a query matches characters and not their escapes, in any case, and nothing in it is a pattern", async () => {
  const session = sessionOf(
    user("a", null, 'one\ntwo "three" \\four é ß Straße'),
    '{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"user","content":"\\u0063af\\u00e9 \\/x"}}',
    user("c", "b", "𝒜 💡 ſet \u212aelvin a.b ΣΑΣ"),
  );
  const found = async (query: string): Promise<string[]> => idsOf([await searched([session], { query })]);
  for (const query of ["one\nTWO", '"three"', "\\FOUR", "É", "ẞ", "strasse".replace("ss", "ß")]) {
    expect([query, (await found(query)).includes("a")]).toEqual([query, true]);
  }
  for (const query of ["CAFÉ", "é /X"]) expect([query, await found(query)]).toEqual([query, ["b"]]);
  for (const query of ["💡", "SET", "KELVIN", "σας", "a.b"])
    expect([query, await found(query)]).toEqual([query, ["c"]]);
  for (const query of ["\\n", "\\u00", "strasse", "a*b", "(", "content", "one.two", "x$"]) {
    expect([query, await found(query)]).toEqual([query, []]);
  }
  await expect(found("\ud83d")).rejects.toMatchObject({ kind: "invalid_params" });
});

test("a line is parsed wherever it can have a match", () => {
  const letters = [...'aAsSkK ſ\u212aéÉßẞ\n"\\/σςΣ💡İıiI\u001b.'];
  const at = (random: number): string => letters[Math.floor(random * letters.length)] as string;
  // A fixed sequence, so that a failure comes again.
  let state = 42;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
  const some = (length: number): string => Array.from({ length }, () => at(random())).join("");
  let matches = 0;
  for (let round = 0; round < 3_000; round += 1) {
    const literal = new Literal(some(1 + (round % 3)));
    const text = some(40);
    if (literal.in(text) === undefined) continue;
    matches += 1;
    const ascii = JSON.stringify(text).replace(
      /[\u0080-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    for (const json of [JSON.stringify(text), ascii]) {
      expect([round, literal.mayBeIn(Buffer.from(json).toString("latin1"))]).toEqual([round, true]);
    }
  }
  expect(matches).toBeGreaterThan(500);
});

test("an excerpt has the text around the match, and begins and ends at characters", () => {
  const text = `${"💡".repeat(100)} needle.${"💡".repeat(100)}`;
  const match = new Literal("NEEDLE").in(text);
  const { excerpt, matchStart, matchLength, ...cuts } = excerptOf(text, match ?? { start: 0, length: 0 });
  expect([excerpt.isWellFormed(), excerpt.length]).toEqual([true, 79 + 6 + 159]);
  expect(excerpt.slice(matchStart, matchStart + matchLength)).toBe("needle");
  expect(cuts).toEqual({ isCutAtStart: true, isCutAtEnd: true });
  expect(excerptOf("a needle", { start: 2, length: 6 })).toEqual({
    excerpt: "a needle",
    matchStart: 2,
    matchLength: 6,
  });
});

test("a search goes on where it was cut, by hits, bytes or time, and finds every entry once", async () => {
  const long = "x".repeat(40_000);
  const ids = (prefix: string) => Array.from({ length: 12 }, (_, index) => `${prefix}${index}`);
  const made = ["p", "q", "r"].map((prefix) =>
    sessionOf(
      ...ids(prefix).map((id, index) => user(id, index === 0 ? null : `${prefix}${index - 1}`, `${long} needle`)),
    ),
  );
  const newest = made.toReversed();
  const expected = ["r", "q", "p"].flatMap((prefix) => ids(prefix).toReversed());
  for (const params of [{ limit: 5 }, { bounds: { maxSearchBytes: 700_000 } }, { bounds: { maxSearchMs: 0 } }]) {
    const answers = await allOf(newest, { query: "Needle", limit: 200, ...params });
    expect(idsOf(answers)).toEqual(expected);
    expect(answers.length).toBeGreaterThan(2);
    expect(answers.flatMap(({ hits }) => hits).some(({ isOnOtherBranch }) => isOnOtherBranch)).toBe(false);
    expect(answers.map(({ sessionsLeft }) => sessionsLeft)).toEqual(
      answers.map(({ sessionsLeft }) => sessionsLeft).toSorted((a, b) => b - a),
    );
    expect([answers[0]?.sessions, answers.at(-1)?.sessionsLeft]).toEqual([3, 0]);
  }
  // A new session is not in a search that goes on, and one that has gone is passed over.
  const first = await searched(newest, { query: "needle", limit: 14 });
  const later = [
    sessionOf(user("z", null, "needle")),
    ...newest.filter(({ sessionId }) => sessionId !== made[1]?.sessionId),
  ];
  const rest = await allOf(later, { query: "needle", ...(first.before !== undefined && { before: first.before }) });
  expect(idsOf(rest)).toEqual(ids("p").toReversed());
});

test("entries of other branches are found, and said to be there", async () => {
  const session = sessionOf(
    user("a", null, "needle"),
    user("b", "a", "needle"),
    user("c", "a", "needle"),
    user("d", "c", "no"),
    '{"type":"message","id":"torn needle',
  );
  for (const limit of [1, 50]) {
    const hits = (await allOf([session], { query: "needle", limit })).flatMap((answer) => answer.hits);
    expect(hits.map(({ entryId, isOnOtherBranch }) => [entryId, isOnOtherBranch])).toEqual([
      ["c", undefined],
      ["b", true],
      ["a", undefined],
    ]);
  }
});

test("torn and foreign lines are passed over, and what is written meanwhile is left to the next search", async () => {
  const session = sessionOf(
    user("a", null, "needle"),
    '{"type":"message","id":"b","par',
    "needle",
    '["needle"]',
    user("c", "a", "needle"),
  );
  const { file } = session;
  appendFileSync(
    file,
    '{"type":"message","id":"d","parentId":"c","timestamp":"","message":{"role":"user","content":"nee',
  );
  expect(idsOf([await searched([session], { query: "needle" })])).toEqual(["c", "a"]);
  const first = await searched([session], { query: "needle", limit: 1 });
  appendFileSync(file, 'dle"}}\n');
  const rest = await searched([session], { query: "needle", before: first.before ?? "" });
  expect([idsOf([rest]), rest.unsearched]).toEqual([["a"], undefined]);
  expect(idsOf([await searched([session], { query: "needle" })])).toEqual(["d", "c", "a"]);
});

test("what cannot be searched is named, and the rest is searched", async () => {
  const whole = sessionOf(user("a", null, "needle"));
  const older = sessionOf();
  writeFileSync(older.file, textOf([{ ...headerOf(older.sessionId), version: 2 }, user("b", null, "needle")]));
  const foreign = sessionOf();
  writeFileSync(foreign.file, textOf([headerOf("another"), user("c", null, "needle")]));
  const none = sessionOf();
  mkdirSync(none.file);
  const gone = { ...sessionOf(), hasEntries: true };
  const ephemeral = { ...sessionOf(), isEphemeral: true };
  const empty = sessionOf();
  const deep = sessionOf(
    user("d", null, "needle"),
    `{"type":"message","id":"e","parentId":"d","x":${"[".repeat(600)}"needle"${"]".repeat(600)}}`,
  );
  const all = [deep, empty, ephemeral, gone, none, foreign, older, whole];
  const names = Object.entries({ deep, ephemeral, gone, none, foreign, older });
  const nameOf = (id: string): string => names.find(([, { sessionId }]) => sessionId === id)?.[0] ?? id;
  const expected = [
    "deep e entry_too_large",
    "ephemeral ephemeral",
    "gone file_unusable",
    "none file_unusable",
    "foreign file_unusable",
    "older file_older_form",
  ];
  for (const bounds of [{}, { maxUnsearched: 2 }]) {
    const answers = await allOf(all, { query: "needle", bounds });
    const unsearched = answers.flatMap((answer) => answer.unsearched ?? []);
    expect(
      unsearched.map(({ sessionId, entryId = "", why }) => [nameOf(sessionId), entryId, why].filter(Boolean).join(" ")),
    ).toEqual(expected);
    expect(idsOf(answers)).toEqual(["d", "a"]);
    expect(answers.every((answer) => (answer.unsearched ?? []).length <= 2 || bounds.maxUnsearched === undefined)).toBe(
      true,
    );
  }
});

test("an entry with a time that is no text is found, and an entry of a million strings in depth does not hold up the rest", async () => {
  const deep = `${"[".repeat(480)}${'"ab",'.repeat(1_000_000)}"needle"${"]".repeat(480)}`;
  const call = `{"type":"toolCall","name":"t","arguments":{"x":${deep}}}`;
  const session = sessionOf(
    user("a", null, "needle"),
    { ...user("b", "a", "needle"), timestamp: { toString: null, valueOf: null } },
    `{"type":"message","id":"c","parentId":"b","timestamp":"","message":{"role":"assistant","content":[${call}]}}`,
  );
  const answers = await allOf([session], { query: "needle", bounds: { maxSearchMs: 20_000 } });
  expect([idsOf(answers), answers[0]?.unsearched]).toEqual([["c", "b", "a"], undefined]);
});

test("a file that was rewritten between two answers is named, and later sessions are searched", async () => {
  const older = sessionOf(user("o", null, "needle"));
  const session = sessionOf(user("a", null, "needle"), user("b", "a", "needle"));
  const first = await searched([session, older], { query: "needle", limit: 1 });
  const before = first.before ?? "";
  const rewritten = textOf([
    headerOf(session.sessionId),
    user("x", null, "needle and more"),
    user("y", "x", "needle and more"),
  ]);
  const unsearched = [{ sessionId: session.sessionId, why: "file_rewritten" }];
  writeFileSync(session.file, rewritten);
  expect(await searched([session, older], { query: "needle", before })).toMatchObject({
    unsearched,
    hits: [{ entryId: "o" }],
  });
  writeFileSync(`${session.file}.new`, rewritten);
  renameSync(`${session.file}.new`, session.file);
  expect(await searched([session, older], { query: "needle", before })).toMatchObject({
    unsearched,
    hits: [{ entryId: "o" }],
  });
});

test("an entry of 50 MB is passed over by name, also where the bytes of a call end within it", async () => {
  const session = sessionOf(user("a", null, "needle"));
  const file = openSync(session.file, "a");
  writeSync(file, '{"type":"message","id":"long","parentId":"a","timestamp":"","message":{"role":"user","content":"');
  for (let mebibytes = 0; mebibytes < 50; mebibytes += 1) writeSync(file, "needle".padEnd(1024 * 1024));
  writeSync(file, `"}}\n${JSON.stringify(user("b", "long", "needle"))}\n`);
  closeSync(file);
  for (const bounds of [{}, { maxSearchBytes: 20 * 1024 * 1024 }]) {
    const answers = await allOf([session], { query: "needle", bounds });
    expect(idsOf(answers)).toEqual(["b", "a"]);
    expect(answers.flatMap(({ hits }) => hits).some(({ isOnOtherBranch }) => isOnOtherBranch)).toBe(false);
    const unsearched = answers.flatMap((answer) => answer.unsearched ?? []);
    expect(unsearched).toEqual([{ sessionId: session.sessionId, entryId: "long", why: "entry_too_large" }]);
    expect(answers.length).toBe(bounds.maxSearchBytes === undefined ? 1 : 3);
  }
});

test("places that no answer has named are refused or lead nowhere else", async () => {
  const session = sessionOf(user("a", null, "needle"));
  const text = (values: unknown): string => Buffer.from(JSON.stringify(values)).toString("base64url");
  const { createdAt, sessionId } = session;
  const bad = [
    "x",
    text({}),
    text([]),
    text(["1", sessionId]),
    text([createdAt, sessionId, 5, 4, 1, 1, 0]),
    text([createdAt, sessionId, 1]),
    text([createdAt, sessionId, 1, 1, 1, 1, {}]),
  ];
  for (const before of bad) {
    await expect(searched([session], { query: "needle", before })).rejects.toMatchObject({ kind: "invalid_params" });
  }
  for (const place of [
    [9e15, 9e15, 1, 1, 0],
    [1, 2, 3, 4, null],
  ]) {
    const found = await searched([session], { query: "needle", before: text([createdAt, sessionId, ...place]) });
    expect(found).toMatchObject({ hits: [], unsearched: [{ why: "file_rewritten" }] });
  }
});

test("a search that is not wanted any more ends, running or waiting", async () => {
  const session = sessionOf(user("a", null, "needle"));
  const file = openSync(session.file, "r+");
  ftruncateSync(file, 400 * 1024 * 1024);
  closeSync(file);
  const bounds = { maxSearchThreads: 1, maxSearchMs: 60_000, maxSearchBytes: 1e9 };
  const searches = new Searches({ ...limits.search, ...bounds } as unknown as SearchLimits);
  const left = new AbortController();
  const began = [1, 2].map(() => searches.search([session], { query: "x" }, left.signal));
  await expect.poll(openFiles).toContain(session.file);
  const why = new Error("gone");
  left.abort(why);
  expect(await Promise.allSettled(began)).toEqual(began.map(() => ({ status: "rejected", reason: why })));
  expect(openFiles()).not.toContain(session.file);
  const small = sessionOf(user("b", null, "needle"));
  expect(idsOf([await searches.search([small], { query: "needle" }, new AbortController().signal)])).toEqual(["b"]);
});

test("searches that end while they open files leave none open", async () => {
  const session = sessionOf(user("a", null, "needle"));
  const all = Array.from({ length: 5_000 }, () => session);
  const searches = new Searches({ ...limits.search, maxSearchThreads: 1 } as unknown as SearchLimits);
  for (let i = 0; i < 40; i += 1) {
    const left = new AbortController();
    const search = searches.search(all, { query: "x" }, left.signal);
    await expect.poll(openFiles).toContain(session.file);
    left.abort(new Error("gone"));
    await expect(search).rejects.toThrow("gone");
    expect(openFiles()).not.toContain(session.file);
  }
});

test("a search whose thread takes too long is overloaded", async () => {
  const session = sessionOf(user("a", null, "needle"));
  await expect(searched([session], { query: "x", bounds: { maxSearchThreadMs: 1 } })).rejects.toMatchObject({
    kind: "overloaded",
  });
});
