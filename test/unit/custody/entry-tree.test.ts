import { expect, test } from "vitest";
import { entryTree } from "../../../server/custody/entry-tree.ts";

const entry = (id: string, parentId: string | null, at = 0, more: object = {}): object => ({
  ...{ type: "message", id, parentId, timestamp: new Date(at).toISOString() },
  ...more,
});

const chain = (length: number): object[] =>
  Array.from({ length }, (_, index) => entry(String(index), index === 0 ? null : String(index - 1)));

test("a tree of entries has pi's form: children by time, orphans as roots, labels resolved", () => {
  const entries = [
    entry("a", null),
    entry("late", "a", 2),
    entry("early", "a", 1),
    entry("orphan", "gone"),
    entry("l1", "late", 3, { type: "label", targetId: "a", label: "first" }),
    entry("l2", "l1", 4, { type: "label", targetId: "late", label: "second" }),
    entry("l3", "l2", 5, { type: "label", targetId: "a" }),
  ];
  const { value, text } = entryTree({ entries, leafId: "l3" });
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
  const [root, orphan] = value.tree;
  expect(root?.children.map(({ entry: { id } }) => id)).toEqual(["early", "late"]);
  expect(root).not.toHaveProperty("label");
  expect(root?.children[1]).toMatchObject({ label: "second", labelTimestamp: new Date(4).toISOString() });
  expect(orphan?.entry["id"]).toBe("orphan");
});

test("a tree as deep as common parsers accept is written, and a deeper one is refused by name", () => {
  const { text } = entryTree({ entries: chain(4_999), leafId: "4998" });
  expect(JSON.parse(text)).toHaveProperty("leafId", "4998");
  expect(text.match(/"children":\[/g)).toHaveLength(4_999);
  expect(() => entryTree({ entries: chain(100_000), leafId: null })).toThrow(/more than 5000 nested entries/);
});

test("duplicate ids and cycles end, and nothing is taken twice", () => {
  const doubled = chain(2_000).flatMap((one) => [one, one]);
  expect(entryTree({ entries: doubled, leafId: null }).text.match(/"children":\[/g)).toHaveLength(2_000);
  const cyclic = [entry("root", null), entry("a", "b"), entry("b", "a"), entry("self", "self")];
  expect(entryTree({ entries: cyclic, leafId: "a" }).value.tree.map(({ entry: { id } }) => id)).toEqual([
    "root",
    "self",
  ]);
  expect(entryTree("nonsense")).toMatchObject({ value: { tree: [], leafId: null } });
});
