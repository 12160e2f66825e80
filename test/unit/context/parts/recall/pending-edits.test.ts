import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { EDITS_MARK, editsData, PendingEdits } from "../../../../../context/parts/recall/pending-edits.ts";
import { assistant, compaction, type FakeSession, session, user } from "../../../extension/session.ts";

const content = [{ type: "text", text: "[masked]" }];
const result = (id: string) => ({ type: "message", id, message: { role: "toolResult", content: [], timestamp: 1 } });
const edits = (id: string, ...targets: readonly string[]) => {
  const data = editsData(
    "masking",
    targets.map((targetId) => ({ targetId, content })),
  );
  return { type: "custom", id, customType: EDITS_MARK, data };
};
const edited = (id: string, targetId: string) => ({ type: "context_edit", id, targetId, replacement: null });

/** What is pending in a session, and how many entries were looked up for it. */
function pendingIn(of: FakeSession) {
  let looked = 0;
  const getEntry = (id: string) => {
    looked += 1;
    return of.getEntry(id);
  };
  const sessionManager = { ...of, getLeafEntry: () => of.getLeafEntry(), getSessionId: () => "s-1", getEntry };
  const pending = new PendingEdits({ entries: {} as never, isUnanswered: () => false });
  const open = (): readonly string[] => {
    looked = 0;
    return [...pending.on({ sessionManager } as unknown as ExtensionContext).keys()];
  };
  return { open, looked: () => looked };
}

test("edits are open until they are on the branch, or a compaction drops their entries", () => {
  const branch = session(result("t1"), result("t2"), result("t3"), edits("c1", "t1", "t2", "t3"), assistant("a1"));
  const { open } = pendingIn(branch);
  expect(open()).toEqual(["t1", "t2", "t3"]);
  branch.add(edited("x1", "t2"));
  expect(open()).toEqual(["t1", "t3"]);
  branch.add(compaction("k1", "t3"));
  expect(open()).toEqual(["t3"]);
  // Another branch, on which none was edited.
  branch.leaf = "a1";
  expect(open()).toEqual(["t1", "t2", "t3"]);
  branch.leaf = "t3";
  expect(open()).toEqual([]);
  branch.add(edits("c2", "t3"));
  expect(open()).toEqual(["t3"]);
});

test("edits are open again on a branch to which the session comes back", () => {
  const branch = session(result("t1"), assistant("a1"), edits("c1", "t1"), assistant("a2"));
  const { open } = pendingIn(branch);
  expect(open()).toEqual(["t1"]);
  branch.leaf = "a1";
  expect(open()).toEqual([]);
  branch.leaf = "a2";
  expect(open()).toEqual(["t1"]);
});

test("a long branch is not read again for each message that it gets", () => {
  const turns = Array.from({ length: 500 }, (_, at) => [user(`u${at}`), assistant(`a${at}`)]).flat();
  const branch = session(result("t1"), ...turns, edits("c1", "t1"));
  const { open, looked } = pendingIn(branch);
  expect([open(), looked() > 1_000]).toEqual([["t1"], true]);
  branch.add(user("more"));
  expect([open(), looked()]).toEqual([["t1"], 1]);
  branch.add(edited("x1", "t1"));
  expect([open(), looked()]).toEqual([[], 1]);
  branch.add(assistant("end"));
  expect([open(), looked()]).toEqual([[], 1]);
});
