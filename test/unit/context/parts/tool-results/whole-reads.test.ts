import { homedir } from "node:os";
import { join } from "node:path";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { isWholeRead } from "../../../../../context/parts/tool-results/whole-reads.ts";
import { session, user } from "../../../extension/session.ts";

/** Whether a file is read whole that the model edits by this path, with so many entries since. */
function isWhole(read: string, edited: string, since = 0): boolean {
  const call = { type: "toolCall", id: "c1", name: "edit", arguments: { path: edited } };
  const later = Array.from({ length: since }, (_, at) => user(`u${at}`));
  const branch = session({ type: "message", id: "a1", message: { role: "assistant", content: [call] } }, ...later);
  const ctx = { sessionManager: branch, cwd: "/project" } as unknown as ExtensionContext;
  return isWholeRead({ toolName: "read", input: { path: read } }, ctx);
}

test.for([
  ["~/a.ts", join(homedir(), "a.ts"), true],
  ["@~/a.ts", "~/b/../a.ts", true],
  ["a.ts", "/project/a.ts", true],
  ["~a.ts", "/project/~a.ts", true],
  ["~/a.ts", "/project/~/a.ts", false],
] as const)("%s and %s are one file: %s", ([read, edited, isOne]) => {
  expect(isWhole(read, edited)).toBe(isOne);
});

test("an edit that 5,000 entries have followed is not looked for", () => {
  expect([4_999, 5_000].map((since) => isWhole("a.ts", "a.ts", since))).toEqual([true, false]);
});
