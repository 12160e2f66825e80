import { expect, test } from "vitest";
import { othersEdit } from "../../../../../context/parts/recall/edits.ts";

const edit = (id: string, text: string | null, targetId = "t1") => ({
  type: "context_edit",
  id,
  targetId,
  replacement: text === null ? null : { content: [{ type: "text", text }] },
});

/** The newest foreign edit of `t1`, in a branch that continues with these entries. */
function found(...edits: readonly { readonly id: string }[]): string | undefined {
  const branch = [{ id: "t1" }, ...edits].map((entry, at, all) => ({ ...entry, parentId: all[at - 1]?.id ?? null }));
  const session = {
    getLeafEntry: () => branch.at(-1),
    getEntry: (id: string) => branch.find((entry) => entry.id === id),
  };
  return othersEdit("t1", "r012", session as unknown as Parameters<typeof othersEdit>[2])?.id;
}

const ours = edit("e1", "[read a.ts: 1.0 KB, 3 lines, ok; masked; recall r012]");

test("content that others edited after our placeholder is not recalled in its old form", () => {
  expect(found()).toBeUndefined();
  expect(found(ours)).toBeUndefined();
  expect(found(ours, edit("e2", "[redacted]"))).toBe("e2");
  expect(found(ours, edit("e2", null))).toBe("e2");
  expect(found(ours, edit("e2", "[read a.ts; masked; recall r0123]"))).toBe("e2");
  expect(found(ours, edit("e2", "[redacted]", "t2"))).toBeUndefined();
});
