import type { BoundaryState } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { keepPending, keptCuts, numbersIn } from "../../../../../context/parts/recall/pending-cuts.ts";
import { createRecall } from "../../../../../context/parts/recall/recall.ts";
import type { SessionEntry } from "../../../../../extension/pi-types.ts";
import { fakeContext, fakeHost } from "../../fake-host.ts";

const mark = "[… cut: 9000 characters, 9 lines in all; recall r001 …]";

/** A session with a result that was cut and then got another extension's details. */
function cutSession() {
  const message = { role: "toolResult", toolCallId: "c1", content: [{ type: "text", text: mark }], details: {} };
  const entries: SessionEntry[] = [];
  const ctx = fakeContext(entries);
  const host = fakeHost(ctx);
  const appended: unknown[] = [];
  const pi = { ...host.pi, getAllTools: () => [], registerTool: () => {} } as unknown as typeof host.pi;
  Object.assign(pi, { appendEntry: (customType: string, data: unknown) => void appended.push({ customType, data }) });
  createRecall(host, { pi, cuts: keptCuts(host.memory), spillDirectory: () => undefined });
  const place = { kind: "spill", sha256: "ab".repeat(32), bytes: 7 } as const;
  const record = { number: 1, part: "toolResults", tool: "read", tokens: 3, place };
  const cut = (): void => {
    keepPending(keptCuts(host.memory), { sessionId: "s1", toolCallId: "c1", record });
    entries.push({ type: "message", id: "x", message } as unknown as SessionEntry);
  };
  const { kind: _, ...where } = place;
  const written = { id: "r001", part: "toolResults", tool: "read", tokens: 3, ...where, resultId: "x" };
  const entry = { customType: "pi-rpcd.recall", data: { v: 1, part: "toolResults", records: [written] } };
  return { ctx, host, appended, cut, entry };
}

test.for(["completed", "aborted"] as const)("the boundary of a turn that was %s records the cut", (outcome) => {
  const { ctx, host, appended, cut, entry } = cutSession();
  const state = { entries: [], outcome, continue: false } as unknown as BoundaryState;
  expect(host.boundary.write({ hook: "turn_end", state, ctx })).toBeUndefined();
  cut();
  // Until it is in the file: another extension can invalidate the proposal.
  for (let turn = 0; turn < 2; turn += 1) {
    const answer = host.boundary.write({ hook: "turn_end", state, ctx });
    expect(answer).toEqual({ entries: [{ type: "custom", ...entry }], continue: false });
  }
  expect(appended).toEqual([]);
  expect(host.faults).toEqual([]);
});

test("a settled run with a cut that no boundary has recorded appends its record", () => {
  const { host, appended, cut, entry } = cutSession();
  host.emit("agent_settled", {});
  expect(appended).toEqual([]);
  cut();
  host.emit("agent_settled", {});
  expect(appended).toEqual([entry]);
});

test("only marks contribute numbers of a text", () => {
  const elements = "[… 3 of 200 elements left out: 9000 characters, 1 line in all; recall r1234 …]";
  expect(numbersIn(`a\n${mark}\n${elements}\n[read a: ok; masked; recall r007]\nrecall r008 …]`)).toEqual([1, 1234]);
});
