import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import type { Params, Result } from "../../../protocol/methods.ts";
import { type TranscriptSource, Transcripts, type Unwritten } from "../../../server/custody/transcript.ts";

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "transcript-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

interface Entry {
  readonly type: string;
  readonly id: string;
  readonly parentId: string | null;
  readonly [field: string]: unknown;
}

type Page = Result<"transcript/page">;
type Outline = Result<"transcript/outline">;
type PageParams = Omit<Params<"transcript/page">, "sessionId">;

const header = { type: "session", version: 3, id: "own", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" };
const note = (id: string, parentId: string | null, fields: object = {}): Entry => ({
  type: "note",
  id,
  parentId,
  ...fields,
});
const timestamp = "2026-01-01T00:00:00.000Z";
/** As pi writes what extensions store: its place in the tree comes last. */
const ofExtension = (id: string, parentId: string | null, data: unknown): object => ({
  type: "custom",
  customType: "n",
  data,
  id,
  parentId,
  timestamp,
});
const textOf = (lines: readonly unknown[]): string =>
  lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
const refused = (name: string, reason?: string) => ({ kind: name, ...(reason && { data: { reason } }) });

/** A session file and its transcript. */
class Fixture {
  readonly file = join(directory, `${crypto.randomUUID()}.jsonl`);
  readonly transcripts = new Transcripts();
  /** What a running pi has. Undefined: none is running. */
  pi: ((since: string | undefined) => Unwritten | undefined) | undefined;
  cursor = 7;
  isEphemeral = false;
  readonly asked: (string | undefined)[] = [];

  constructor(...lines: readonly unknown[]) {
    if (lines.length > 0) this.write(header, ...lines);
  }

  write(...lines: readonly unknown[]): void {
    writeFileSync(this.file, textOf(lines));
  }

  append(...lines: readonly unknown[]): void {
    appendFileSync(this.file, textOf(lines));
  }

  get source(): TranscriptSource {
    const fixture = this;
    return {
      sessionId: "own",
      file: this.file,
      isEphemeral: this.isEphemeral,
      get place() {
        return { cursor: fixture.cursor, epoch: "e" };
      },
      unwritten: (since) => {
        this.asked.push(since);
        return Promise.resolve(this.pi?.(since));
      },
      requireNoEntries: () => {
        throw new WireError("session_file_unusable", "It is missing.");
      },
      olderForm: () => new WireError("session_asleep", "Only pi reads it."),
      sessionOf: (file) => (file === "/parent.jsonl" ? "parent" : undefined),
    };
  }

  page(params: PageParams = {}): Promise<Page> {
    return this.transcripts.page(this.source, params, new AbortController().signal);
  }

  outline(params: Omit<Params<"transcript/outline">, "sessionId"> = {}): Promise<Outline> {
    return this.transcripts.outline(this.source, params, new AbortController().signal);
  }

  piece(params: Omit<Params<"transcript/entry">, "sessionId">): Promise<Result<"transcript/entry">> {
    return this.transcripts.piece(this.source, params, new AbortController().signal);
  }

  /** All pages, the last one first. */
  async pages(params: PageParams = {}): Promise<Page[]> {
    const pages = [await this.page(params)];
    for (let { before } = pages[0] as Page; before !== undefined; before = pages.at(-1)?.before) {
      pages.push(await this.page({ ...params, before }));
      expect(pages.length).toBeLessThan(200);
    }
    return pages;
  }

  /** The ids of the whole branch. */
  async ids(params: PageParams = {}): Promise<string[]> {
    return idsOf(...(await this.pages(params)).reverse());
  }

  /** The whole text at a path. */
  async whole(
    { entryId, path, place }: { entryId: string; path?: string; place?: string | undefined },
    length = 4_194_304,
  ) {
    let text = "";
    for (let offset: number | undefined = 0; offset !== undefined; ) {
      const piece = await this.piece({ entryId, length, offset, ...(path && { path }), ...(place && { place }) });
      text += piece.text;
      offset = piece.next;
    }
    return text;
  }
}

function idsOf(...pages: readonly Page[]): string[] {
  return pages.flatMap(({ entries }) => entries.map(({ id }) => id));
}

/** A generator of numbers below a bound, the same for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("a branch is read in pages from its end, each with where it goes on", async () => {
  const fixture = new Fixture(note("a", null), note("b", "a"), ofExtension("c", "b", { id: "x" }), note("d", "c"));
  const first = await fixture.page({ limit: 3 });
  expect(first).toEqual({
    entries: [note("b", "a"), ofExtension("c", "b", { id: "x" }), note("d", "c")],
    branchPoints: [],
    before: expect.any(String),
    leafId: "d",
    cursor: 7,
    epoch: "e",
  });
  expect(await fixture.page({ before: first.before ?? "" })).toEqual({
    entries: [note("a", null)],
    branchPoints: [],
    leafId: "d",
  });
  expect(await new Fixture(note("a", null)).page()).not.toHaveProperty("before");
  expect(await new Fixture(" ").page()).toMatchObject({ entries: [], leafId: null, cursor: 7 });
});

test("any tree is read as pi's own walk reads it, whatever the pages", async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const next = random(seed);
    const entries: Entry[] = [];
    const lines: unknown[] = [];
    for (let index = 0; index < 80; index += 1) {
      const jump = next(10);
      const parent = jump === 0 ? entries[next(entries.length)] : entries.at(-1);
      const entry = note(`e${index}`, parent?.id ?? null, {
        text: "t".repeat(next(4) === 0 ? next(90_000) : next(300)),
      });
      entries.push(entry);
      lines.push(entry);
      if (next(12) === 0)
        lines.push(
          ["", "{torn", "null", "[1]", '{"type":"note"}', `{"id":"${"i".repeat(200)}","parentId":null}`][next(6)],
        );
    }
    const byId = new Map(entries.map((entry) => [entry.id, entry]));
    const leaf = next(2) === 0 ? entries.at(-1) : entries[next(entries.length)];
    const branch: string[] = [];
    for (let at = leaf; at !== undefined; at = byId.get(at.parentId ?? "")) branch.unshift(at.id);
    const fixture = new Fixture(...lines);
    const named = leaf === entries.at(-1) ? {} : { leafId: leaf?.id ?? "" };
    const pages = (await fixture.pages({ ...named, limit: 1 + next(30), maxBytes: 65_536 * (1 + next(4)) })).reverse();
    expect(idsOf(...pages)).toEqual(branch);
    // Branch points have every other child, and the last entry after it.
    const descendants = (id: string): Entry[] => entries.filter(({ id: one }) => path(one).includes(id));
    const path = (id: string): string[] => [
      id,
      ...(byId.get(id)?.parentId ? path(byId.get(id)?.parentId as string) : []),
    ];
    const points = branch.flatMap((id) => {
      const children = entries.filter(({ id: child, parentId }) => parentId === id && !branch.includes(child));
      const told = children.map((child) => ({ entryId: child.id, leafId: descendants(child.id).at(-1)?.id }));
      return told.length > 0 ? [{ entryId: id, children: told }] : [];
    });
    expect(pages.flatMap(({ branchPoints }) => branchPoints ?? [{ entryId: "unknown", children: [] }])).toEqual(points);
  }
});

test("a daemon that has read nothing yet goes on from a page's place", async () => {
  const entries = Array.from({ length: 300 }, (_, index) => note(`e${index}`, index === 0 ? null : `e${index - 1}`));
  const fixture = new Fixture(...entries.slice(0, 200), note("other", "e50"), ...entries.slice(200));
  let before: string | undefined;
  const read: Page[] = [];
  do {
    // Each of these knows nothing of the file.
    const page: Page = await new Transcripts().page(
      fixture.source,
      { limit: 70, ...(before && { before }) },
      new AbortController().signal,
    );
    read.unshift(page);
    before = page.before;
  } while (before !== undefined);
  expect(idsOf(...read)).toEqual(entries.map(({ id }) => id));
  expect(read.flatMap(({ branchPoints }) => branchPoints ?? [{ entryId: "unknown", children: [] }])).toEqual([
    { entryId: "e50", children: [{ entryId: "other", leafId: "other" }] },
  ]);
});

test("what is appended between two pages changes nothing, and is on the next first page", async () => {
  const fixture = new Fixture(note("a", null), note("b", "a"), note("c", "b"));
  const { before } = await fixture.page({ limit: 1 });
  fixture.append(note("d", "c"), note("e", "a"));
  const second = await fixture.page({ before: before ?? "" });
  expect(idsOf(second)).toEqual(["a", "b"]);
  expect(second.branchPoints).toEqual([{ entryId: "a", children: [{ entryId: "e", leafId: "e" }] }]);
  expect(await fixture.ids()).toEqual(["a", "e"]);
  expect(await fixture.ids({ leafId: "d" })).toEqual(["a", "b", "c", "d"]);
  appendFileSync(fixture.file, JSON.stringify(note("f", "e")).slice(0, 10));
  expect(await fixture.ids()).toEqual(["a", "e"]);
  appendFileSync(fixture.file, JSON.stringify(note("f", "e")).slice(10));
  // pi loads a last line without a line feed.
  expect(await fixture.ids()).toEqual(["a", "e", "f"]);
});

test("a file that was rewritten after a page is refused by name", async () => {
  const lines = [note("a", null), note("b", "a", { text: "b".repeat(70_000) }), note("c", "b")];
  const fixture = new Fixture(...lines);
  const { before = "", cuts } = await fixture.page({ limit: 2 });
  const cut = cuts?.[0] ?? { entryId: "" };
  // In place: the same length, and shorter.
  fixture.write(header, note("z", null), ...lines.slice(1));
  await expect(fixture.page({ before })).rejects.toMatchObject(refused("transcript_changed"));
  fixture.write(header);
  await expect(fixture.page({ before })).rejects.toMatchObject(refused("transcript_changed"));
  await expect(fixture.piece({ ...cut })).rejects.toMatchObject(refused("transcript_changed"));
  const grown = [note("d", null), note("e", "d", { text: "e".repeat(300_000) }), note("f", "e")];
  fixture.write(header, ...grown);
  expect(await fixture.ids({ limit: 1 })).toEqual(["d", "e", "f"]);
  fixture.write(
    header,
    ...grown.map(({ id, parentId, ...rest }) => ({ ...rest, id: `${id}2`, parentId: parentId && `${parentId}2` })),
  );
  expect(await fixture.ids({ limit: 1 })).toEqual(["d2", "e2", "f2"]);
  fixture.write(header, ...lines);
  // Replaced by a copy.
  writeFileSync(`${fixture.file}.new`, textOf([header, ...lines]));
  renameSync(`${fixture.file}.new`, fixture.file);
  await expect(fixture.page({ before })).rejects.toMatchObject(refused("transcript_changed"));
  rmSync(fixture.file);
  await expect(fixture.page({ before })).rejects.toMatchObject(refused("transcript_changed"));
  await expect(fixture.page()).rejects.toMatchObject(refused("session_file_unusable"));
  expect(await new Fixture(note("a", null)).ids()).toEqual(["a"]);
});

test("cycles, missing parents and ids that are used twice end a branch, and never a daemon", async () => {
  const cycle = new Fixture(note("a", "c"), note("b", "a"), note("c", "b"));
  expect(await cycle.ids()).toEqual(["a", "b", "c"]);
  expect(await cycle.ids({ limit: 1 })).toEqual(["a", "b", "c"]);
  expect(await new Fixture(note("a", "a")).ids()).toEqual(["a"]);
  expect(await new Fixture(note("a", "gone"), note("b", "a")).ids()).toEqual(["a", "b"]);
  expect(await new Fixture(note("b", "a"), note("a", null), note("c", "b")).ids()).toEqual(["b", "c"]);
  const twice = new Fixture(note("a", null), note("b", "a"), note("b", "a", { again: true }), note("c", "b"));
  expect((await twice.page()).entries).toEqual([note("a", null), note("b", "a", { again: true }), note("c", "b")]);
  // Also when the places of both are known.
  const far = note("x", "b", { text: "t".repeat(400_000) });
  const apart = new Fixture(
    note("a", null),
    note("b", null),
    far,
    note("b", "a", { again: true }),
    { ...far, id: "y" },
    note("c", "b"),
  );
  for (let read = 0; read < 2; read += 1)
    expect((await apart.page()).entries[1]).toEqual(note("b", "a", { again: true }));
  // Another parser would read another id.
  const names = `{"type":"note","id":"b","parentId":"a","id":7}`;
  expect(await new Fixture(note("a", null), names, note("c", "a")).ids()).toEqual(["a", "c"]);
  expect(await new Fixture(note("a", null), names, note("c", "b")).ids()).toEqual(["c"]);
  await expect(twice.page({ leafId: "none" })).rejects.toMatchObject(refused("entry_not_found"));
});

test("only the session's own file is read", async () => {
  const fixture = new Fixture(note("a", null));
  const other = join(directory, "other.jsonl");
  writeFileSync(other, textOf([{ ...header, id: "other" }, note("secret", null)]));
  const { before } = await new Fixture(note("a", null), note("b", "a")).page({ limit: 1 });
  rmSync(fixture.file);
  symlinkSync(other, fixture.file);
  await expect(fixture.page()).rejects.toMatchObject(refused("session_file_unusable", "symbolic_link"));
  rmSync(fixture.file);
  renameSync(other, fixture.file);
  await expect(fixture.page()).rejects.toMatchObject(refused("session_file_unusable", "other_session"));
  await expect(fixture.page({ before: before ?? "" })).rejects.toMatchObject(refused("session_file_unusable"));
  await expect(fixture.piece({ entryId: "secret" })).rejects.toMatchObject(refused("session_file_unusable"));
  fixture.write({ ...header, version: 2 }, note("a", null));
  await expect(fixture.page()).rejects.toMatchObject(refused("session_asleep"));
  fixture.write("no header");
  await expect(fixture.page()).rejects.toMatchObject(refused("session_file_unusable", "header_damaged"));
});

test("a place that no page has named is refused", async () => {
  const fixture = new Fixture(note("a", null), note("b", "a", { text: "t".repeat(70_000) }), note("c", "b"));
  const { before = "", cuts } = await fixture.page({ limit: 2 });
  const forged = (change: (values: unknown[]) => unknown): string =>
    Buffer.from(JSON.stringify(change(JSON.parse(Buffer.from(before, "base64url").toString()) as unknown[]))).toString(
      "base64url",
    );
  for (const place of [
    "!",
    "AAAA",
    Buffer.from("[]").toString("base64url"),
    forged(() => ({})),
    forged(([, ...rest]) => rest),
    forged((all) => [...all, 1]),
    forged(([, ...rest]) => ["x y", ...rest]),
  ]) {
    await expect(fixture.page({ before: place })).rejects.toMatchObject(refused("invalid_params"));
    await expect(fixture.piece({ entryId: "b", place })).rejects.toMatchObject(refused("invalid_params"));
  }
  for (const at of [
    [1, 2],
    [0, 10 ** 15],
    [2 ** 60, 2 ** 60],
  ]) {
    await expect(
      fixture.page({ before: forged((all) => [...all.slice(0, 4), ...at, ...all.slice(6)]) }),
    ).rejects.toMatchObject(refused("transcript_changed"));
  }
  const place = (start: number, end: number, inode: unknown) =>
    Buffer.from(JSON.stringify([start, end, inode])).toString("base64url");
  const [start = 0, end = 0, inode] = JSON.parse(
    Buffer.from(cuts?.[0]?.place ?? "", "base64url").toString(),
  ) as number[];
  for (const at of [
    place(start + 1, end, inode),
    place(start, end + 1, inode),
    place(0, end, inode),
    place(start, end * 9, inode),
    place(start, end, 1),
  ]) {
    await expect(fixture.piece({ entryId: "b", place: at })).rejects.toMatchObject(refused("transcript_changed"));
  }
  await expect(fixture.piece({ entryId: "c", place: place(start, end, inode) })).rejects.toMatchObject(
    refused("transcript_changed"),
  );
  await expect(fixture.piece({ entryId: "b", offset: 10 ** 6 })).rejects.toMatchObject(refused("invalid_params"));
  await expect(fixture.piece({ entryId: "b", path: "/none" })).rejects.toMatchObject(refused("invalid_params"));
  await expect(fixture.piece({ entryId: "z" })).rejects.toMatchObject(refused("entry_not_found"));
});

test("pieces of what a page has cut are the whole", async () => {
  const text = Array.from({ length: 20_000 }, (_, index) => `${index} é "\\" \n\u{1f600}`).join("");
  const data = Buffer.alloc(3_000_000, 7).toString("base64");
  const fixture = new Fixture(
    note("a", null),
    ofExtension("b", "a", { text, image: { type: "image", data } }),
    note("c", "b"),
  );
  const { cuts = [], entries } = await fixture.page({ limit: 2 });
  expect(cuts.map(({ path }) => path)).toEqual(["/data/text", "/data/image/data"]);
  const [ofText, ofImage] = cuts;
  const shown = (entries[0] as unknown as { data: { text: string } }).data.text;
  expect(text.startsWith(shown)).toBe(true);
  expect(Buffer.byteLength(JSON.stringify(shown)) - 2).toBe(ofText?.shown);
  for (const known of [fixture, { ...fixture, whole: fixture.whole }] as Fixture[]) {
    if (ofText) expect(await fixture.whole(ofText, 5_000)).toBe(text);
    if (ofImage) expect(await fixture.whole(ofImage)).toBe(data);
    expect(known).toBeDefined();
  }
  // Without the place, and the whole entry.
  const fresh = new Fixture();
  writeFileSync(
    fresh.file,
    textOf([header, note("a", null), ofExtension("b", "a", { text, image: { type: "image", data } }), note("c", "b")]),
  );
  expect(await fresh.whole({ entryId: "b", path: "/data/text" })).toBe(text);
  expect(JSON.parse(await fresh.whole({ entryId: "b" }, 100_000))).toEqual(
    ofExtension("b", "a", { text, image: { type: "image", data } }),
  );
  expect(await fresh.piece({ entryId: "a", path: "/parentId" })).toEqual({ text: "null", bytes: 4 });
});

test("one call reads at most 16 MiB: an abandoned branch, a long entry and a long line are passed in several", async () => {
  const text = "t".repeat(1_000_000);
  const left = Array.from({ length: 40 }, (_, index) =>
    note(`left${index}`, index === 0 ? "a" : `left${index - 1}`, { text }),
  );
  const fixture = new Fixture(note("root", null), note("a", "root"), ...left, note("b", "a"));
  const pages = (await fixture.pages()).reverse();
  expect(idsOf(...pages)).toEqual(["root", "a", "b"]);
  expect(pages.length).toBeGreaterThan(2);
  expect(pages[0]?.branchPoints).toEqual([{ entryId: "a", children: [{ entryId: "left0", leafId: "left39" }] }]);
  // A daemon that knows nothing cannot know the branches.
  const fresh = new Transcripts().page(
    fixture.source,
    { before: pages[1]?.before ?? "" },
    new AbortController().signal,
  );
  expect(await fresh).toEqual({ entries: pages[0]?.entries, leafId: "b" });
  // What was read is known: nothing of it is read again.
  expect(await fixture.pages()).toHaveLength(1);
  const named = new Fixture(note("root", null), note("a", "root"), ...left, note("b", "a"));
  await expect(named.pages({ leafId: "none" })).rejects.toMatchObject(refused("entry_not_found"));

  // 100 MiB in one line: only its place is told, and its pieces.
  const long = new Fixture(note("a", null));
  const begin = '{"type":"note","id":"long","parentId":"a","text":"';
  const descriptor = openSync(long.file, "a");
  writeSync(descriptor, begin);
  for (let index = 0; index < 100; index += 1) writeSync(descriptor, Buffer.alloc(1024 * 1024, "é"));
  writeSync(descriptor, '"}\n');
  closeSync(descriptor);
  expect(await long.page()).toMatchObject({ entries: [], leafId: null, before: expect.any(String) });
  expect(await long.ids()).toEqual(["a", "long"]);
  long.append(note("b", "long"));
  const cut = (await long.pages()).flatMap(({ cuts = [] }) => cuts);
  expect(cut).toEqual([
    { entryId: "long", path: "", bytes: begin.length + 100 * 1024 * 1024 + 2, shown: 0, place: expect.any(String) },
  ]);
  const { entryId = "", place = "" } = cut[0] ?? {};
  const piece = await long.piece({ entryId, place, length: 1_025 });
  expect(piece).toEqual({
    text: `${begin}${"é".repeat((1_024 - begin.length) / 2)}`,
    bytes: cut[0]?.bytes,
    next: 1_024,
  });
  expect((await long.piece({ entryId, place, offset: 100 * 1024 * 1024, length: 4_096 })).text.endsWith('é"}')).toBe(
    true,
  );
  await expect(long.piece({ entryId, place, path: "/text" })).rejects.toMatchObject(refused("too_large"));
  const stored = new Fixture(
    note("a", null),
    ofExtension("b", "a", { list: Array.from({ length: 999 }, () => ({ index: 1 })), text: "t".repeat(15_000_000) }),
    note("c", "b"),
  );
  expect(await stored.ids()).toEqual(["a", "b", "c"]);
  // pi skips a long line that is no entry.
  const junk = new Fixture(note("a", null), `{${" ".repeat(20_000_000)}`, note("b", "a"));
  expect(await junk.ids()).toEqual(["a", "b"]);
  const sparse = new Fixture(note("a", null));
  const hole = openSync(sparse.file, "r+");
  ftruncateSync(hole, 200 * 1024 * 1024);
  closeSync(hole);
  expect(await sparse.ids()).toEqual(["a"]);
});

test("a running pi is asked only for what the file lacks, and tells the place in the log", async () => {
  const fixture = new Fixture(note("a", null), note("b", "a"), note("c", "b"));
  const at = { cursor: 30, epoch: "e", openAfter: 28 };
  fixture.pi = () => ({ entries: [note("d", "c"), note("e", "d")], leafId: "e", at });
  const page = await fixture.page({ limit: 1 });
  expect(page).toMatchObject({ entries: [{ id: "e" }], leafId: "e", ...at });
  expect(fixture.asked).toEqual(["c"]);
  // pi has written one of them meanwhile.
  fixture.append(note("d", "c"));
  fixture.pi = () => ({ entries: [note("e", "d")], leafId: "e", at });
  expect(idsOf(await fixture.page({ before: page.before ?? "", limit: 2 }))).toEqual(["c", "d"]);
  expect(fixture.asked).toEqual(["c", "d"]);
  expect(await fixture.ids({ limit: 2 })).toEqual(["a", "b", "c", "d", "e"]);
  // It has moved in its tree, which the file does not say.
  fixture.pi = () => ({ entries: [], leafId: "b", at });
  expect(await fixture.page()).toMatchObject({
    entries: [{ id: "a" }, { id: "b" }],
    leafId: "b",
    branchPoints: [{ entryId: "b", children: [{ entryId: "c", leafId: "d" }] }],
  });
  fixture.pi = () => ({ entries: [], leafId: null, at });
  expect(await fixture.page()).toEqual({ entries: [], branchPoints: [], leafId: null, ...at });
  // It does not know the last entry: another program has written it.
  fixture.pi = () => ({ entries: undefined, leafId: null, at });
  expect(await fixture.page()).toMatchObject({ leafId: "d", ...at });
});

test("entries that exist only in pi are paged too, and their long texts", async () => {
  const text = "t".repeat(100_000);
  const entries = [note("a", null), note("b", "a", { text }), note("c", "a"), note("d", "b"), note("e", "gone")];
  const fixture = new Fixture();
  fixture.isEphemeral = true;
  fixture.pi = () => ({ entries, leafId: "d", at: { cursor: 1, epoch: "e" } });
  const pages = await fixture.pages({ limit: 1 });
  expect(idsOf(...pages.toReversed())).toEqual(["a", "b", "d"]);
  expect(pages.flatMap(({ branchPoints }) => branchPoints)).toEqual([
    { entryId: "a", children: [{ entryId: "c", leafId: "c" }] },
  ]);
  const cut = pages.flatMap(({ cuts = [] }) => cuts)[0];
  expect(cut).toEqual({ entryId: "b", path: "/text", bytes: 100_000, shown: 8_192 });
  if (cut) expect(await fixture.whole(cut, 30_000)).toBe(text);
  expect(await fixture.ids({ leafId: "e" })).toEqual(["e"]);
  entries[0] = note("a", "d");
  expect(await fixture.ids()).toEqual(["a", "b", "d"]);
  await expect(fixture.page({ leafId: "none" })).rejects.toMatchObject(refused("entry_not_found"));
  expect(fixture.asked.every((since) => since === undefined)).toBe(true);
  fixture.pi = undefined;
  await expect(fixture.page()).rejects.toMatchObject(refused("session_file_unusable"));
});

test("the file is read again if the session told something meanwhile, so that no event is told twice", async () => {
  const fixture = new Fixture(note("a", null));
  fixture.pi = () => {
    // A pi has begun, written and ended.
    if (fixture.asked.length === 1) fixture.append(note("b", "a"));
    if (fixture.asked.length === 1) fixture.cursor = 9;
    return undefined;
  };
  expect(await fixture.page()).toMatchObject({ leafId: "b", cursor: 9 });
  fixture.pi = () => {
    fixture.cursor += 1;
    return undefined;
  };
  expect(await fixture.page()).toMatchObject({ leafId: "b" });
});

test("a page holds its bounds, and always has an entry", async () => {
  const text = "t".repeat(60_000);
  const entries = Array.from({ length: 20 }, (_, index) =>
    note(`e${index}`, index === 0 ? null : `e${index - 1}`, { text }),
  );
  const fixture = new Fixture(...entries);
  const bytes = (page: Page): number => Buffer.byteLength(JSON.stringify(page.entries));
  const pages = await fixture.pages({ maxBytes: 200_000 });
  expect(pages.map(bytes).every((size) => size < 200_000)).toBe(true);
  expect(pages.map(({ entries: { length } }) => length)).toEqual([3, 3, 3, 3, 3, 3, 2]);
  const texts = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [index, "t".repeat(10_000)]));
  const big = new Fixture(note("a", null), note("b", "a", { texts }), note("c", "b"));
  const sizes = (await big.pages({ maxBytes: 65_536 })).map(bytes);
  expect(sizes).toHaveLength(3);
  expect(Math.max(...sizes)).toBeLessThan(256 * 1024);
});

/** All entries of a session's outline, whatever the pages. */
async function outlineOf(fixture: Fixture, limit = 500): Promise<Outline[]> {
  const pages = [await fixture.outline({ limit })];
  for (let before = pages[0]?.before; before !== undefined; before = pages[0]?.before) {
    pages.unshift(await fixture.outline({ limit, before }));
    expect(pages.length).toBeLessThan(500);
  }
  return pages;
}

const placesOf = (pages: readonly Outline[]) =>
  pages.flatMap(({ entries }) => entries.map(({ entryId, parentId }) => [entryId, parentId]));

test("an outline has every entry of every branch once, whatever the pages, in the file and in a running pi", async () => {
  const entries = Array.from({ length: 60 }, (_, index) =>
    note(`e${index}`, index === 0 ? null : `e${(index * 7) % index}`),
  );
  const all = entries.map(({ id, parentId }) => [id, parentId]);
  for (const written of [0, 1, 37, 60]) {
    const fixture = new Fixture(...entries.slice(0, written));
    if (written === 0) fixture.isEphemeral = true;
    const at = { cursor: 1, epoch: "e" };
    fixture.pi = () => ({ entries: entries.slice(written), leafId: "e59", at });
    for (const limit of [1, 7, 60, 2_000]) {
      const pages = await outlineOf(fixture, limit);
      expect(placesOf(pages)).toEqual(all);
      expect(pages.at(-1)?.leafId).toBe("e59");
      expect(pages.every(({ entries: { length } }) => length <= limit)).toBe(true);
    }
    expect(new Set(fixture.asked)).toEqual(new Set([written === 0 ? undefined : `e${written - 1}`]));
  }
  const asleep = new Fixture(...entries.slice(0, 40), "{not JSON", ...entries.slice(40));
  expect(placesOf(await outlineOf(asleep, 7))).toEqual(all);
  expect(await new Fixture({ ...header, parentSession: "/parent.jsonl" }).outline()).toEqual({
    entries: [],
    leafId: null,
  });
});

test("an outline has the first words of each kind of entry, and nothing else of it", async () => {
  const message = (id: string, fields: object): Entry =>
    note(id, null, { type: "message", timestamp, message: fields });
  const long = `${"a".repeat(199)}😀`;
  const fixture = new Fixture(
    message("a", { role: "user", content: `  ${long}` }),
    message("b", {
      role: "user",
      content: [
        { type: "image", data: "x" },
        { type: "text", text: "Look." },
      ],
    }),
    message("c", { role: "assistant", content: [...Array(9)].map(() => ({ type: "toolCall", name: "bash" })) }),
    message("d", { role: "assistant", content: [], errorMessage: "Overloaded", stopReason: "error" }),
    message("e", { role: "toolResult", toolName: "read", content: [{ type: "text", text: "x".repeat(100_000) }] }),
    message("f", { role: "bashExecution", command: "ls" }),
    note("g", null, { type: "compaction", summary: "All of it." }),
    note("h", null, { type: "model_change", provider: "p", modelId: "m" }),
    note("i", null, { type: "thinking_level_change", thinkingLevel: "high" }),
    note("j", null, { type: "label", targetId: "a", label: "start" }),
    note("k", null, { type: "session_info", name: "A name" }),
    ofExtension("l", null, {}),
    note("m", null, { type: "custom_message", customType: "build", content: 7 }),
    note("n", null, { type: "message", message: "none", timestamp: "never" }),
    note("o", null, { timestamp: { toString: null, valueOf: null } }),
  );
  const at = Date.parse(timestamp);
  const { entries } = await fixture.outline();
  expect(entries.map(({ entryId: _, parentId: __, ...words }) => words)).toEqual([
    { type: "message", at, role: "user", text: "a".repeat(199) },
    { type: "message", at, role: "user", text: "Look." },
    { type: "message", at, role: "assistant", tools: ["bash", "bash", "bash", "bash"] },
    { type: "message", at, role: "assistant", text: "Overloaded" },
    { type: "message", at, role: "toolResult", text: "x".repeat(200), tools: ["read"] },
    { type: "message", at, role: "bashExecution", text: "ls" },
    { type: "compaction", text: "All of it." },
    { type: "model_change", text: "p/m" },
    { type: "thinking_level_change", text: "high" },
    { type: "label", text: "start", targetId: "a" },
    { type: "session_info", text: "A name" },
    { type: "custom", at, text: "n" },
    { type: "custom_message", text: "build" },
    { type: "message" },
    { type: "note" },
  ]);
});

test("an outline names the session from which this one was made, and refuses a file that was rewritten", async () => {
  const fixture = new Fixture();
  const entries = [note("a", null), note("b", "a")];
  fixture.write({ ...header, parentSession: "/parent.jsonl" }, ...entries);
  const { before = "", parent } = await fixture.outline({ limit: 1 });
  expect(parent).toEqual({ sessionId: "parent" });
  expect(await fixture.outline({ before })).toEqual({ entries: [expect.objectContaining({ entryId: "a" })] });
  fixture.write({ ...header, parentSession: "/other.jsonl" }, ...entries);
  expect((await fixture.outline()).parent).toEqual({});
  fixture.write(header, note("other", null), note("more", "other"), ...entries);
  await expect(fixture.outline({ before })).rejects.toMatchObject(refused("transcript_changed"));
  await expect(fixture.outline({ before: "AAAA" })).rejects.toMatchObject(refused("invalid_params"));
});

test("a place that a client has changed leads to no fault", async () => {
  const fixture = new Fixture();
  fixture.write(header, note("a", null), note("b", "a"), note("c", "b"));
  const { before = "" } = await fixture.outline({ limit: 1 });
  const values = JSON.parse(Buffer.from(before, "base64url").toString()) as unknown[];
  const [, , , , at] = values as number[];
  for (const changed of [0, 1, 100, (at ?? 0) - 1]) {
    const place = Buffer.from(JSON.stringify(values.with(4, changed))).toString("base64url");
    expect(await fixture.outline({ before: place })).toMatchObject({ entries: expect.any(Array) });
  }
});

test("an outline of 10,000 entries in a row or 2,000 branches takes few calls, and of a long file each reads its part", async () => {
  const text = "t".repeat(700);
  const message = (id: string, parentId: string | null): Entry =>
    note(id, parentId, { type: "message", message: { role: "user", content: text } });
  const row = new Fixture(...Array.from({ length: 10_000 }, (_, n) => message(`e${n}`, n === 0 ? null : `e${n - 1}`)));
  const pages = await outlineOf(row, 2_000);
  // The last one may have only the header.
  expect(pages.length).toBeLessThanOrEqual(6);
  expect(placesOf(pages)).toHaveLength(10_000);
  expect(Math.max(...pages.map((page) => JSON.stringify(page).length))).toBeLessThan(1_000_000);
  const points = Array.from({ length: 4_000 }, (_, n) => message(`e${n}`, n === 0 ? null : `e${((n - 1) >> 1) << 1}`));
  expect(placesOf(await outlineOf(new Fixture(...points), 2_000))).toHaveLength(4_000);
  const big = Array.from({ length: 40 }, (_, n) =>
    note(`e${n}`, n === 0 ? null : `e${n - 1}`, { text: "t".repeat(1_000_000) }),
  );
  const ofLong = await outlineOf(new Fixture(...big), 2_000);
  expect(ofLong.map(({ entries: { length } }) => length).every((length) => length <= 16)).toBe(true);
  expect(placesOf(ofLong)).toHaveLength(40);
});

test("an entry that pi has not written is shown, and those before it, although it has more fields than are looked at", async () => {
  const fixture = new Fixture();
  fixture.isEphemeral = true;
  const data = Object.fromEntries(Array.from({ length: 20_001 }, (_, at) => [`k${at}`, 0]));
  const entries = [note("a", null), ofExtension("b", "a", data), note("c", "b")] as Entry[];
  fixture.pi = () => ({ entries, leafId: "c", at: { cursor: 1, epoch: "e" } });
  expect(await fixture.ids()).toEqual(["a", "b", "c"]);
});
