import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readStoredEntries } from "../../../server/custody/stored-entries.ts";

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "stored-entries-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

const header = { type: "session", version: 3, id: "own", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" };
const entry = (id: string, parentId: string | null) => ({ type: "custom", id, parentId });

async function read(lines: readonly unknown[], maxBytes = 4_096) {
  const file = join(directory, "session.jsonl");
  writeFileSync(file, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
  return await readStoredEntries({ sessionId: "own", file }, maxBytes);
}

test("the entries of a session file are read as pi reads them", async () => {
  const entries = [entry("a", null), entry("b", "a")];
  const found = await read([header, entries[0], "", "{torn", "null", "[]", entries[1]]);
  expect(found).toEqual({ entries, leafId: "b", at: expect.any(Number) });
  expect(await read([header])).toMatchObject({ entries: [], leafId: null });
});

test("a file that pi must read itself is left to it", async () => {
  expect(await read([{ ...header, version: 2 }, entry("a", null)])).toBe("file_older_form");
  expect(await read([{ ...header, version: undefined }, entry("a", null)])).toBe("file_older_form");
  expect(await read([header, entry("a", null)], 100)).toBe("file_too_large");
  expect(await readStoredEntries({ sessionId: "own", file: join(directory, "none.jsonl") }, 100)).toBe("missing");
});

test("a file that no pi can load is refused by name", async () => {
  const unusable = (reason: string) => ({ kind: "session_file_unusable", data: { reason } });
  await expect(read([{ ...header, id: "other" }])).rejects.toMatchObject(unusable("other_session"));
  await expect(read(["no header"])).rejects.toMatchObject(unusable("header_damaged"));
  await expect(read([header, entry("a", "b"), entry("b", "a")])).rejects.toMatchObject(unusable("entries_damaged"));
  await expect(read([header, entry("a", null), entry("a", null)])).rejects.toMatchObject(unusable("entries_damaged"));
  // Each would be followed without end, or take many seconds to parse.
  for (const damaged of [
    { type: "message", id: null, parentId: null },
    { type: "message" },
    { type: "message", id: 1, parentId: 1 },
    `{"type":"custom","id":"b","parentId":"a","data":${"[".repeat(600)}${"]".repeat(600)}}`,
  ]) {
    await expect(read([header, entry("a", null), damaged])).rejects.toMatchObject(unusable("entries_damaged"));
  }
  const file = join(directory, "session.jsonl");
  truncateSync(file, 20 * 1024 ** 3);
  await expect(readStoredEntries({ sessionId: "own", file }, 100)).rejects.toMatchObject(unusable("too_large"));
});
