import { expect, test, vi } from "vitest";
import { branchUse } from "../../../../../context/parts/cache/branch-use.ts";
import { Branch } from "./branch.ts";

test("a session is read again only after another entry or another leaf", () => {
  const branch = new Branch();
  const first = branch.prompt();
  branch.answer();
  const { sessionManager } = branch.context();
  const reads = vi.spyOn(branch.session, "getEntry");
  const use = branchUse(sessionManager);
  const once = reads.mock.calls.length;
  expect(branchUse(sessionManager)).toBe(use);
  expect(reads.mock.calls.length).toBe(once);

  branch.append("compaction");
  expect(branchUse(sessionManager)).toMatchObject({ last: use.last, isBroken: true });
  branch.goTo(first);
  expect(branchUse(sessionManager)).toMatchObject({ last: undefined, models: [] });
});
