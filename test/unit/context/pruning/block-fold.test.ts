import { expect, test } from "vitest";
import { BlockFold } from "../../../../context/pruning/block-fold.ts";
import { wholeText } from "../../../../context/pruning/block-text.ts";
import { unchecked } from "../../../helpers/partial.ts";
import { Branch, blockOf } from "./branch.ts";

/** A branch of ten messages of the user, and the state of its blocks at any time. */
function branch() {
  const made = new Branch();
  const users = Array.from({ length: 10 }, (_, at) => made.user(`Message ${at}.`));
  const fold = new BlockFold();
  const of = (from: number, to: number) => users.slice(from, to + 1);
  const tree = () => fold.on(made.context.sessionManager);
  const states = () => Object.fromEntries(tree().all.map(({ id, state }) => [id, state.kind]));
  return { made, users, of, tree, states };
}

test("a block replaces its entries from the result of its call on", () => {
  const { made, of, users, tree } = branch();
  expect(tree().all).toEqual([]);
  const [answer, result] = made.compress("Topic", blockOf("b1", of(1, 3), "What was said."));
  expect(tree().over(users[2] as string)?.id).toBe("b1");
  expect(tree().over(users[4] as string)).toBeUndefined();
  expect(tree().find("b1")).toMatchObject({ topic: "Topic", entryId: result, answerId: answer, callId: "call1" });
});

test("a tree stays the same object until a block changes", () => {
  const { made, of, tree } = branch();
  made.compress("Topic", blockOf("b1", of(1, 3), "A"));
  const before = tree();
  made.user("And now?");
  expect(tree()).toBe(before);
  made.operate("decompress", "b1");
  expect(tree()).not.toBe(before);
});

test("a covered block is consumed by its parent, and is restored unchanged when the parent is decompressed", () => {
  const { made, of, tree, states, users } = branch();
  made.compress("One", blockOf("b1", of(1, 2), "A"));
  made.compress("Two", blockOf("b2", of(1, 4), [{ text: "Before " }, { block: "b1" }, { text: " behind." }]));
  made.compress("Three", blockOf("b3", of(0, 5), [{ block: "b2" }, { text: " End." }]));
  expect(states()).toEqual({ b1: "consumed", b2: "consumed", b3: "active" });
  expect(tree().find("b1")?.state).toEqual({ kind: "consumed", parent: "b2" });
  expect(tree().holder("b1")?.id).toBe("b3");
  made.operate("decompress", "b3");
  expect(states()).toEqual({ b1: "consumed", b2: "active", b3: "inactive" });
  made.operate("decompress", "b2");
  expect(states()).toEqual({ b1: "active", b2: "inactive", b3: "inactive" });
  expect(tree().over(users[3] as string)).toBeUndefined();
  made.operate("recompress", "b3");
  expect(states()).toEqual({ b1: "consumed", b2: "consumed", b3: "active" });
  made.operate("decompress", "b3");
  expect(states()).toEqual({ b1: "active", b2: "inactive", b3: "inactive" });
});

test("a block is not recompressed over a block that was made since", () => {
  const { made, of, tree, states } = branch();
  made.compress("One", blockOf("b1", of(1, 5), "A"));
  made.operate("decompress", "b1");
  made.compress("Two", blockOf("b2", of(4, 7), "B"));
  expect(tree().hinders("recompress", "b1")).toBe("b2 covers a part of b1.");
  made.operate("recompress", "b1");
  expect(states()).toEqual({ b1: "inactive", b2: "active" });
  made.operate("decompress", "b2");
  made.operate("recompress", "b1");
  expect(states()).toEqual({ b1: "active", b2: "inactive" });
});

test("a refused operation on a block is explained in a sentence", () => {
  const { made, of, tree, users } = branch();
  made.compress("One", blockOf("b1", of(1, 2), "A"));
  made.compress("Two", blockOf("b2", of(1, 4), [{ block: "b1" }]));
  made.compress("Three", blockOf("b3", of(6, 7), "C"));
  expect(tree().hinders("decompress", "b9")).toBe("b9 does not exist.");
  expect(tree().hinders("decompress", "b1")).toBe("b1 is part of b2.");
  expect(tree().hinders("recompress", "b2")).toBe("b2 is active.");
  expect(tree().hinders("decompress", "b2")).toBeUndefined();
  made.compact(users[7] as string);
  expect(tree().hinders("decompress", "b2")).toBe("b2 has left the context with a compaction.");
  expect(tree().hinders("decompress", "b3")).toBe("A part of what b3 covers has left the context with a compaction.");
});

test("a block whose entries were all compacted is a checkpoint, one that lost only a part of them stays", () => {
  const { made, of, tree, users } = branch();
  made.compress("One", blockOf("b1", of(1, 2), "A"));
  made.compress("Two", blockOf("b2", of(4, 6), "B"));
  const compaction = made.compact(users[5] as string);
  expect(tree().find("b1")?.state).toEqual({ kind: "checkpointed", compactionId: compaction });
  expect(tree().active.map(({ id }) => id)).toEqual(["b2"]);
  expect(wholeText(unchecked(tree().all[0]), tree())).toBe("A");
});

test("another branch has its own blocks, and going back restores the former ones", () => {
  const { made, of, states, users } = branch();
  made.compress("One", blockOf("b1", of(1, 3), "A"));
  const [, leaf] = made.compress("Two", blockOf("b2", of(5, 6), "B"));
  made.go(users[8] as string);
  expect(states()).toEqual({});
  made.compress("Three", blockOf("b3", of(2, 4), "C"));
  expect(states()).toEqual({ b3: "active" });
  made.go(leaf);
  expect(states()).toEqual({ b1: "active", b2: "active" });
});

test("a record that does not fit the branch is ignored as a whole", () => {
  const { made, of, users, states } = branch();
  made.compress("One", blockOf("b1", of(2, 4), "A"));
  made.compress("Overlaps", blockOf("b2", of(6, 7), "B"), blockOf("b3", of(4, 5), "C"));
  made.compress("The same id", blockOf("b1", of(6, 7), "B"));
  made.compress("Not there", blockOf("b4", ["nowhere"], "B"));
  made.compress("Backwards", blockOf("b5", [users[7] as string, users[6] as string], "B"));
  made.compress("Twice", blockOf("b6", of(1, 5), [{ block: "b1" }, { block: "b1" }], { children: ["b1"] }));
  made.compress("Foreign", blockOf("b7", of(6, 7), [{ block: "b1" }], { children: [] }));
  made.compress("Itself", blockOf("b8", of(6, 7), [{ block: "b8" }]));
  made.compress("Half", blockOf("b9", of(3, 5), [{ block: "b1" }]));
  expect(states()).toEqual({ b1: "active" });
});

test.each([
  ["no version", { topic: "T", blocks: [blockOf("b1", ["e1"], "A")] }],
  ["no topic", { v: 1, blocks: [blockOf("b1", ["e1"], "A")] }],
  ["no blocks", { v: 1, topic: "T", blocks: [] }],
  ["a foreign id", { v: 1, topic: "T", blocks: [blockOf("m001", ["e1"], "A")] }],
  ["no entries", { v: 1, topic: "T", blocks: [{ ...blockOf("b1", ["e1"], "A"), entryIds: "e1" }] }],
  ["a body of numbers", { v: 1, topic: "T", blocks: [{ ...blockOf("b1", ["e1"], "A"), body: [1] }] }],
  ["a body without an end", { v: 1, topic: "T", blocks: [blockOf("b1", ["e1"], "x".repeat(4_000_001))] }],
  ["kept texts without words", { v: 1, topic: "T", blocks: [{ ...blockOf("b1", ["e1"], "A"), kept: [{}] }] }],
])("a record with %s is no record", (_what, details) => {
  const { made, states } = branch();
  made.call("compress", {}, "Stored.", { details });
  expect(states()).toEqual({});
});

test("the result of a failed call or of another tool has no blocks", () => {
  const { made, of, states } = branch();
  const details = { v: 1, topic: "T", blocks: [blockOf("b1", of(1, 2), "A")] };
  made.call("compress", {}, "No.", { details, isError: true });
  made.call("read", {}, "Text.", { details });
  expect(states()).toEqual({});
});

test("invalid sizes count as absent", () => {
  const { made, of, tree } = branch();
  const sizes = { tokensBefore: null, tokensAfter: -5 } as unknown as { tokensBefore: number };
  made.compress("One", blockOf("b1", of(1, 2), "A", sizes));
  expect(tree().find("b1")).toMatchObject({ tokensBefore: 0, tokensAfter: 0 });
});
