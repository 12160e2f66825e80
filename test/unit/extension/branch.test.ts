import { expect, test } from "vitest";
import { findOnBranch, findUnanswered, whyGone } from "../../../extension/delivery/branch.ts";
import { assistant, compaction, pushed, session, user } from "./session.ts";

test("finds the entries of the active branch only", () => {
  const reader = session(user("u1"), pushed("e1", "d1"), assistant("a1"), pushed("e2", "d2"));
  reader.add({ ...pushed("e3", "d3"), parentId: "u1" });
  reader.leaf = "e2";
  expect([...findOnBranch(reader, new Set(["d1", "d2", "d3"])).values()]).toMatchObject([
    { deliveryId: "d2", entryId: "e2" },
    { deliveryId: "d1", entryId: "e1" },
  ]);
});

test("does not look further than it has to", () => {
  const reader = session(user("u1"), pushed("e1", "d1"));
  const seen: string[] = [];
  const watched = {
    getLeafEntry: () => reader.getLeafEntry(),
    getEntry: (id: string) => {
      seen.push(id);
      return reader.getEntry(id);
    },
  };
  findOnBranch(watched, new Set(["d1"]));
  findOnBranch(watched, new Set());
  expect(seen).toEqual([]);
});

test("a push is unanswered until a complete answer follows", () => {
  expect(
    findUnanswered(
      session(pushed("e1", "d1"), assistant("a1"), pushed("e2", "d2"), assistant("a2", "error"), pushed("e3", "d3")),
    ),
  ).toMatchObject([{ deliveryId: "d2" }, { deliveryId: "d3" }]);
});

test.for([
  ["removed_by_extension", [pushed("e1", "d1"), user("u1")]],
  ["compacted", [pushed("e1", "d1"), user("u1"), compaction("c1", "u1"), user("u2")]],
  ["removed_by_extension", [user("u1"), pushed("e1", "d1"), compaction("c1", "u1")]],
  ["removed_by_extension", [user("u1"), pushed("e1", "d1"), compaction("c1", "e1")]],
  ["compacted", [pushed("e1", "d1"), compaction("c1", "c1")]],
  ["compacted", [pushed("e1", "d1"), user("u1"), compaction("c1", "e1"), compaction("c2", "u1")]],
  ["session_replaced", [user("u1")]],
] as const)("says %s of a push that is in no request", ([why, entries]) => {
  expect(whyGone(session(...entries), "e1")).toBe(why);
});
