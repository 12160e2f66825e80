import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { keptCuts } from "../../../../../context/parts/recall/pending-cuts.ts";
import { createRecall } from "../../../../../context/parts/recall/recall.ts";
import { RECALL_MARK, type RecallRecord, recordData } from "../../../../../context/parts/recall/record.ts";
import { fakeHost } from "../../fake-host.ts";
import { Branch } from "../../pruning/branch.ts";

test("an output that was recorded again after a crash counts as removed once, and once for each part that shortened it", () => {
  const branch = new Branch();
  const [, result] = branch.call("read", { path: "a.ts" }, "text");
  const record: RecallRecord = {
    number: 1,
    part: "deduplication",
    tool: "read",
    tokens: 50,
    place: { kind: "entry", entryId: result },
  };
  const recorded = (one: RecallRecord): string =>
    branch.add({ type: "custom", customType: RECALL_MARK, data: recordData(one.part, [one]) });
  recorded(record);
  recorded({ ...record, tokens: 48 });
  recorded({ ...record, part: "sizeDecay", tokens: 7 });
  const sessionManager = {
    getSessionId: () => "s1",
    getEntries: () => branch.entries,
    getBranch: () => branch.entries,
    getEntry: (id: string) => branch.entries.find((entry) => entry.id === id),
    getLeafEntry: () => branch.entries.at(-1),
    buildSessionProjection: () => ({ entries: branch.entries.map((sourceEntry) => ({ sourceEntry })) }),
  };
  const ctx = { sessionManager } as unknown as ExtensionContext;
  const host = fakeHost(ctx);
  const pi = { getAllTools: () => [], registerTool: () => undefined } as unknown as typeof host.pi;
  const recall = createRecall(host, { pi, cuts: keptCuts(host.memory), spillDirectory: () => undefined });
  expect(recall.masked(ctx).map(({ part, tokens }) => [part, tokens])).toEqual([
    ["deduplication", 48],
    ["sizeDecay", 7],
  ]);
});
