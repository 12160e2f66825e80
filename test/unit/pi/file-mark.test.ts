import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeBranch } from "../../../server/pi/branch-file.ts";
import {
  allHeads,
  changeSince,
  descends,
  type EntryHead,
  isOneLine,
  markOf,
  noFile,
} from "../../../server/pi/file-mark.ts";

let root: string;
let file: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "mark-"));
  file = join(root, "session.jsonl");
});
afterEach(() => rmSync(root, { recursive: true }));

const header = `${JSON.stringify({ type: "session", version: 3, id: "s", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" })}\n`;
const entry = (id: string, parentId: string | null, text = ""): string =>
  `${JSON.stringify({ type: "message", id, parentId, timestamp: "", message: { role: "user", content: text } })}\n`;
const ids = (entries: readonly EntryHead[] | undefined): string[] | undefined => entries?.map(({ id }) => id);

describe("the mark of a session file", () => {
  test("shows additions after it, and nothing while there are none", async () => {
    expect(await changeSince(file, noFile)).toBeUndefined();
    writeFileSync(file, header + entry("a", null) + entry("b", "a"));
    const first = await changeSince(file, noFile);
    expect([first?.kind, ids(first?.entries), first?.mark.lastId]).toEqual(["grown", ["a", "b"], "b"]);
    const mark = first?.mark ?? noFile;
    expect(mark).toEqual(await markOf(file));
    expect(await changeSince(file, mark)).toBeUndefined();
    appendFileSync(file, entry("c", "b", '\u2028é\\"id":"x"'));
    const second = await changeSince(file, mark);
    expect([second?.kind, ids(second?.entries)]).toEqual(["grown", ["c"]]);
    expect(second?.entries).toEqual([{ id: "c", parentId: "b" }]);
  });

  test("reads a line only when it is complete, and skips lines that are not entries", async () => {
    const whole = entry("b", "a", "x".repeat(100_000));
    writeFileSync(file, header + entry("a", null) + whole.slice(0, 50_000));
    const { mark } = (await changeSince(file, noFile)) ?? {};
    expect(mark?.lastId).toBe("a");
    appendFileSync(
      file,
      `${whole.slice(50_000)}null\n{"type":"message"}\n{torn\n{"id":"odd","parentId":"b","type":"x"}\n`,
    );
    expect(ids((await changeSince(file, mark ?? noFile))?.entries)).toEqual(["b", "odd"]);
  });

  test("distinguishes a file that was rewritten, replaced, truncated or removed from one that has grown", async () => {
    writeFileSync(file, header + entry("a", null) + entry("b", "a"));
    const mark = await markOf(file);
    const kindNow = async (): Promise<unknown> => {
      const change = await changeSince(file, mark);
      return [change?.kind, ids(change?.entries)];
    };
    writeFileSync(file, header + entry("x", null) + entry("y", "x") + entry("z", "y"));
    expect(await kindNow()).toEqual(["rewritten", ["x", "y", "z"]]);
    writeFileSync(`${file}.other`, header + entry("a", null) + entry("b", "a") + entry("c", "b"));
    renameSync(`${file}.other`, file);
    expect(await kindNow()).toEqual(["rewritten", ["a", "b", "c"]]);
    truncateSync(file, header.length + entry("a", null).length);
    expect(await kindNow()).toEqual(["rewritten", ["a"]]);
    truncateSync(file, 0);
    expect(await kindNow()).toEqual(["removed", []]);
    rmSync(file);
    expect(await kindNow()).toEqual(["removed", []]);
  });

  test("is created from the end of the file alone, also after a very large entry", async () => {
    writeFileSync(file, header + entry("a", null) + entry("large", "a", "x".repeat(300_000)));
    expect((await markOf(file)).lastId).toBe("large");
    expect(await markOf(file)).toEqual((await changeSince(file, noFile))?.mark);
    expect(await markOf(`${file}.none`)).toEqual(noFile);
  });
});

test("a branch is identified by its last entry, a line of entries by each", () => {
  const entries: EntryHead[] = [
    { id: "b", parentId: "a" },
    { id: "c", parentId: "b" },
    { id: "x", parentId: "a" },
  ];
  expect([descends(entries, "a"), descends(entries, "c"), descends(entries, "x")]).toEqual([true, false, true]);
  expect([descends([], "a"), descends(entries, undefined)]).toEqual([true, true]);
  expect([isOneLine(entries, "a"), isOneLine(entries.slice(0, 2), "a"), isOneLine(entries, "z")]).toEqual([
    false,
    true,
    false,
  ]);
  // A cycle is not a tree, and must not cause an endless loop.
  expect(
    descends(
      [
        { id: "r", parentId: "s" },
        { id: "s", parentId: "r" },
      ],
      "a",
    ),
  ).toBe(false);
});

test("an entry by which pi has moved in the tree continues the line, and no other entry does", async () => {
  const moved = (type: object): string => {
    const { id, parentId, ...rest } = { id: "c", parentId: "a", timestamp: "", ...type };
    return `${JSON.stringify({ ...rest, id, parentId })}\n${entry("d", "c")}`;
  };
  const isLine = async (lines: string): Promise<boolean> => {
    writeFileSync(file, header + entry("a", null) + entry("b", "a") + lines);
    return isOneLine(await allHeads(file), undefined);
  };
  expect(await isLine(moved({ type: "custom", customType: "pi-rpcd.navigated" }))).toBe(true);
  expect(await isLine(`{"type":"branch_summary","id":"c","parentId":"a","summary":""}\n${entry("d", "c")}`)).toBe(true);
  expect(await isLine(moved({ type: "custom", customType: "other" }))).toBe(false);
  expect(await isLine(entry("c", "a"))).toBe(false);
});

test("a branch is copied to its own file, with the entries that lead to it and nothing else", async () => {
  writeFileSync(
    file,
    header + entry("a", null) + entry("b", "a") + entry("x", "a", "strange") + entry("c", "b") + entry("y", "x"),
  );
  const request = { file, sessionId: "new", cwd: "/", now: new Date(0) };
  const target = await writeBranch({ ...request, leafId: "c" });
  expect(target).toBe(join(root, "1970-01-01T00-00-00-000Z_new.jsonl"));
  expect(ids(await allHeads(target))).toEqual(["a", "b", "c"]);
  const written: unknown = JSON.parse(readFileSync(target, "utf8").split("\n", 1)[0] ?? "");
  expect(written).toMatchObject({ type: "session", version: 3, id: "new", cwd: "/", parentSession: file });
  await expect(writeBranch({ ...request, sessionId: "none", leafId: "nobody" })).rejects.toThrow("not part of");
  expect(readFileSync(target, "utf8")).not.toContain("strange");
});
