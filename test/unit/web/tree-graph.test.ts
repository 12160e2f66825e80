import { expect, test } from "vitest";
import type { OutlineEntry } from "../../../protocol/transcript-methods.ts";
import { type EntryRow, EntryTree, type TreeRow } from "../../../web/state/tree-graph.ts";
import { kindOfEntry } from "../../../web/views/tree-words.ts";

const entry = (entryId: string, parentId: string | null, more: Partial<OutlineEntry> = {}): OutlineEntry => ({
  entryId,
  parentId,
  type: "message",
  role: "assistant",
  ...more,
});

/** Entries in a row. */
const row = (from: string, count: number, parentId: string | null): OutlineEntry[] =>
  Array.from({ length: count }, (_, n) => entry(`${from}${n}`, n === 0 ? parentId : `${from}${n - 1}`));

const folded = { opened: new Set<string>(), showsUsers: false };
const all = { ...folded, opened: { has: () => true } as unknown as ReadonlySet<string> };

/** As `git log --graph` writes it: the lanes that pass, the point, and what it is. */
const drawn = (rows: readonly TreeRow[]): string[] =>
  rows.map((each) => {
    const passing = "| ".repeat(each.lane);
    if (each.kind === "fold") return `${passing}: ${each.count} ${each.isOpen ? "entries" : "more"}`;
    const sign = each.isHere ? "@" : each.isActive ? "*" : "o";
    return `${passing}${sign} ${each.id}${each.before === "join" ? " /" : ""}${each.branches > 1 ? ` (${each.branches})` : ""}`;
  });

test("branches are lanes, newest first, and runs without a branch point are folded", () => {
  const entries = [
    ...row("a", 6, null),
    ...row("b", 6, "a2"),
    entry("b6", "b5", { type: "compaction" }),
    ...row("c", 2, "b6"),
    ...row("d", 1, "b2"),
    ...row("e", 5, "b2"),
  ];
  const tree = new EntryTree(entries, "c1");
  expect(drawn(tree.rows(folded))).toEqual([
    "@ c1",
    "* c0",
    "* b6",
    ": 3 more",
    "| o e4",
    "| : 3 more",
    "| o e0 /",
    "| o d0 /",
    "* b2 (3)",
    "* b1",
    "* b0",
    "| o a5",
    "| o a4",
    "| o a3 /",
    "* a2 (2)",
    "* a1",
    "* a0",
  ]);
  const opened = tree.rows({ ...folded, opened: new Set(["fold-e1"]) });
  expect(drawn(opened).slice(5, 9)).toEqual(["| : 3 entries", "| o e3", "| o e2", "| o e1"]);
  expect([tree.size, tree.leaves, tree.leafFrom("a4"), tree.isActive("b0")]).toEqual([21, 4, "a5", true]);
  expect([...tree.from("d0")].map(({ entryId }) => entryId)).toEqual(["d0", "b2", "b1", "b0", "a2", "a1", "a0"]);
});

test("an open run keeps its name while entries are added to it", () => {
  const entries = row("a", 8, null);
  const names = [7, 8].map((count) =>
    new EntryTree(entries.slice(0, count), `a${count - 1}`).rows(folded).find(({ kind }) => kind === "fold"),
  );
  expect(names).toMatchObject([
    { id: "fold-a1", count: 5 },
    { id: "fold-a1", count: 6 },
  ]);
});

test("compactions, models, labelled entries, where pi is, and messages of users are not folded", () => {
  const entries = row("a", 12, null);
  const more: Record<string, Partial<OutlineEntry>> = {
    a2: { type: "compaction" },
    a3: { type: "label", targetId: "a6", text: "here" },
    a4: { type: "model_change" },
    a9: { role: "user" },
  };
  const changed = entries.map((each) => ({ ...each, ...more[each.entryId] }));
  const shown = (showsUsers: boolean, leafId = "a11") =>
    drawn(new EntryTree(changed, leafId).rows({ ...folded, showsUsers }));
  const before = ["* a6", "* a5", "* a4", "* a3", "* a2", "* a1", "* a0"];
  expect(shown(true)).toEqual(["@ a11", "* a10", "* a9", "* a8", "* a7", ...before]);
  expect(shown(false)).toEqual(["@ a11", ": 4 more", ...before]);
  expect(shown(true, "a9").slice(0, 3)).toEqual(["o a11", "o a10", "@ a9"]);
  const unlabelled = [...changed, entry("a12", "a11", { type: "label", targetId: "a6" })];
  expect(drawn(new EntryTree(unlabelled, "a12").rows(folded)).slice(0, 2)).toEqual(["@ a12", ": 7 more"]);
});

test("several trees follow each other, the one that pi is on first, and a missing parent is said", () => {
  const entries = [...row("a", 2, null), ...row("b", 2, null), entry("c", "gone")];
  const rows = new EntryTree(entries, "a1").rows(all);
  expect(drawn(rows)).toEqual(["@ a1", "* a0", "o c", "o b1", "o b0"]);
  expect(rows.map((each) => each.kind === "entry" && each.isCut)).toEqual([false, false, true, false, false]);
  expect(new EntryTree([], null).rows(all)).toEqual([]);
});

function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

/** A tree as pi can write it, or with cycles, missing parents and ids that are used twice. */
function randomEntries(seed: number, isHostile: boolean): OutlineEntry[] {
  const next = random(seed);
  const jumps = 1 + next(12);
  return Array.from({ length: next(300) }, (_, n) => {
    const id = isHostile && next(20) === 0 ? `e${next(n + 1)}` : `e${n}`;
    const earlier = `e${next(jumps) === 0 ? next(Math.max(1, n)) : n - 1}`;
    const parentId = n === 0 || next(60) === 0 ? null : isHostile && next(15) === 0 ? `e${next(400)}` : earlier;
    const type = next(15) === 0 ? "compaction" : "message";
    return entry(id, parentId, { type, role: next(5) === 0 ? "user" : "assistant" });
  });
}

test("each entry of any tree is in exactly one row or fold, and every line ends at its parent", () => {
  for (let seed = 1; seed <= 400; seed += 1) {
    const entries = randomEntries(seed, seed % 2 === 0);
    const next = random(seed);
    const ids = [...new Set(entries.map(({ entryId }) => entryId))].sort();
    const leafId = ids[next(Math.max(1, ids.length))] ?? null;
    const tree = new EntryTree(entries, leafId);
    const rows = tree.rows(all);
    const shown = rows.filter((each): each is EntryRow => each.kind === "entry");
    expect(shown.map(({ id }) => id).sort()).toEqual(ids);
    const few = tree.rows({ ...folded, showsUsers: seed % 3 === 0 });
    const count = few.reduce((sum, each) => sum + (each.kind === "fold" ? each.count : 1), 0);
    expect(count).toBe(ids.length);
    // The lines at the lower edge of a row are those at the upper edge of the next one.
    for (const drawnRows of [rows, few]) {
      let above: number[] = [];
      for (const each of drawnRows) {
        const passing = Array.from({ length: each.lane }, (_, lane) => lane);
        const hasTop = each.kind === "fold" || each.hasNext;
        expect([...passing, ...(hasTop ? [each.lane] : [])]).toEqual(above);
        const hasBottom = each.kind === "fold" || each.before === "line";
        above = [...passing, ...(hasBottom ? [each.lane] : [])];
      }
      expect(above).toEqual([]);
    }
    for (const [index, { id, lane, before, entry: own }] of shown.entries()) {
      if (before === "none") continue;
      const below = shown.slice(index + 1).find((other) => other.lane === (before === "line" ? lane : lane - 1));
      expect([id, below?.id]).toEqual([id, own.parentId]);
    }
    const most = Math.max(0, ...shown.map(({ lane }) => lane));
    expect(most).toBeLessThanOrEqual(Math.log2(ids.length + 1) + 1);
    // The branch that pi is on is the one from its leaf to the beginning.
    const active = shown.filter(({ isActive }) => isActive).map(({ id }) => id);
    expect(active).toEqual(leafId === null ? [] : [...tree.from(leafId)].map(({ entryId }) => entryId));
  }
});

test("a row of 10,000 entries, 2,000 branches, and branches in branches need few rows or lanes", () => {
  const long = row("a", 10_000, null);
  expect(new EntryTree(long, "a9999").rows(folded)).toHaveLength(3);
  expect(new EntryTree(long, "a9999").rows(all)).toHaveLength(10_001);
  expect(new EntryTree(row("b", 200_000, null), null).rows(all)).toHaveLength(200_001);
  const wide = [entry("root", null), ...Array.from({ length: 2_000 }, (_, n) => entry(`w${n}`, "root"))];
  const rows = new EntryTree(wide, "w7").rows(folded);
  expect([rows.length, rows[0]?.id, Math.max(...rows.map(({ lane }) => lane))]).toEqual([2_001, "w7", 1]);
  // At each entry a branch was left before the session went on.
  const left = Array.from({ length: 1_000 }, (_, n) => [
    entry(`c${n}`, n === 0 ? null : `c${n - 1}`),
    ...(n === 0 ? [] : [entry(`l${n}`, `c${n}`)]),
  ]).flat();
  expect(Math.max(...new EntryTree(left, null).rows(all).map(({ lane }) => lane))).toBe(1);
  const nested = Array.from({ length: 10_000 }, (_, n) => entry(`n${n}`, n === 0 ? null : `n${(n - 1) >> 1}`));
  const lanes = new EntryTree(nested, "n9999").rows(all).map(({ lane }) => lane);
  expect(Math.max(...lanes)).toBeLessThanOrEqual(14);
});

test.each(["__proto__", "constructor", "toString"])("an entry of the role or type %j is called by it", (name) => {
  expect(kindOfEntry(entry("a", null, { role: name }))).toBe(name);
  expect(kindOfEntry(entry("a", null, { type: name, role: "" }))).toBe(name);
});
