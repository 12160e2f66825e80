import { expect, test } from "vitest";
import { findEntries, findUnanswered, whyLeftOut } from "../../../extension/delivery/branch.ts";
import { assistant, compaction, pushed, session, user } from "./session.ts";

test("finds the entries of every branch, and prefers the active branch's", () => {
  const reader = session(user("u1"), pushed("e1", "d1"), assistant("a1"), pushed("e2", "d2"));
  reader.add({ ...pushed("e3", "d3"), parentId: "u1" });
  reader.add({ ...pushed("e4", "d1"), parentId: "u1" });
  reader.leaf = "e2";
  expect([...findEntries(reader, new Set(["d1", "d2", "d3", "d4"])).values()]).toMatchObject([
    { deliveryId: "d2", entryId: "e2" },
    { deliveryId: "d1", entryId: "e1" },
    { deliveryId: "d3", entryId: "e3" },
  ]);
});

test("searches no further than necessary", () => {
  const reader = session(user("u1"), pushed("e1", "d1"));
  const seen: string[] = [];
  const watched = {
    getLeafEntry: () => reader.getLeafEntry(),
    getEntry: (id: string) => {
      seen.push(id);
      return reader.getEntry(id);
    },
    getEntries: () => expect.unreachable(),
  };
  findEntries(watched, new Set(["d1"]));
  findEntries(watched, new Set());
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
] as const)("says %s of a push that a request leaves out", ([why, entries]) => {
  expect(whyLeftOut(session(...entries), "e1")).toBe(why);
});

test("reports a push on another branch as off the branch", () => {
  const reader = session(user("u1"), pushed("e1", "d1"));
  reader.add({ ...user("u2"), parentId: "u1" });
  expect(whyLeftOut(reader, "e1")).toBe("off_branch");
});
