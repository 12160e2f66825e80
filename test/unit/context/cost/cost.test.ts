import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { COST_MARK_TYPE, markData } from "../../../../context/cost/marks.ts";
import { FoldOfSession } from "../../../../context/cost/tracker.ts";

const entriesOf = (...labels: readonly string[]) =>
  labels.map((label) => ({
    type: "custom",
    customType: COST_MARK_TYPE,
    data: markData({ kind: "checkpoint", label }),
  }));
const ctxOf = (entries: readonly object[]) =>
  ({ sessionManager: { getEntries: () => [...entries] } }) as unknown as Pick<ExtensionContext, "sessionManager">;
const told = (session: FoldOfSession, entries: readonly object[]): readonly string[] =>
  session.read(ctxOf(entries)).checkpoints.map(({ event }) => event.label);

test("checkpoints written while the session is in this pi are reported, each once, also the first of an empty session", () => {
  const session = new FoldOfSession();
  const entries = entriesOf("a", "b");
  expect(told(session, [])).toEqual([]);
  expect(told(session, entries.slice(0, 1))).toEqual(["a"]);
  expect(told(session, entries)).toEqual(["b"]);
  expect(told(session, entries)).toEqual([]);
  expect(session.read(ctxOf(entries)).fold.checkpointCount).toBe(2);
});

test("a resumed session's checkpoints are not reported again, nor are those of another session", () => {
  const resumed = new FoldOfSession();
  expect(told(resumed, entriesOf("a", "b"))).toEqual([]);
  expect(told(resumed, entriesOf("a", "b", "c"))).toEqual([]);
  resumed.forget();
  const other = entriesOf("x");
  expect(told(resumed, other)).toEqual([]);
  expect(told(resumed, [...other, ...entriesOf("y")])).toEqual(["y"]);
});
