import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { summarise } from "../../../context/parts/compaction/summary.ts";
import { type Boundary, BoundaryWriter } from "../../../extension/boundary.ts";
import { unlessAborted } from "../../../extension/unless-aborted.ts";
import { unchecked } from "../../helpers/partial.ts";
import { session, user } from "./session.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const never = new Promise<never>(() => {});
const model = { provider: "p", id: "m", contextWindow: 100_000 };

/** A summary by a provider whose stream ends as this promise does. */
function summaryBy(result: Promise<unknown>, signal: AbortSignal) {
  const ctx = { signal, modelRegistry: { streamSimple: () => ({ result: () => result }) } };
  const request = { model, messages: [], maxTokens: 300, prompt: undefined, tokensOf: (text: string) => text.length };
  return summarise(unchecked(request), ctx as unknown as ExtensionContext);
}

test("after an abort a summary is not awaited if the provider ignores the abort", async () => {
  const controller = new AbortController();
  const summary = summaryBy(never, controller.signal);
  controller.abort(new Error("The run was aborted."));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await summary).toEqual({ failed: "The run was aborted.", usage: undefined });
});

test("a summary whose provider observes the abort reports its cost", async () => {
  const controller = new AbortController();
  const usage = { totalTokens: 7 };
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const summary = summaryBy(promise, controller.signal);
  controller.abort();
  await vi.advanceTimersByTimeAsync(1_000);
  resolve({ stopReason: "aborted", errorMessage: "Aborted.", content: [], usage });
  expect(await summary).toEqual({ failed: "Aborted.", usage });
  expect(vi.getTimerCount()).toBe(0);
});

test("a part that does not answer after the abort loses only its own drafts", async () => {
  const faults: string[] = [];
  const controller = new AbortController();
  const writer = new BoundaryWriter((where, thrown) => faults.push(`${where}: ${(thrown as Error).message}`));
  const draft: SessionBoundaryDraft = { type: "custom", customType: "state", data: 1 };
  writer.contribute("deaf", () => never);
  writer.contribute("other", () => ({ drafts: [draft] }));
  const answer = writer.write({
    hook: "turn_end",
    state: { entries: [], continue: false, outcome: "completed" },
    ctx: { signal: controller.signal, sessionManager: session(user("u1")) },
  } as unknown as Boundary);
  controller.abort(new Error("aborted"));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await answer).toEqual({ entries: [draft], continue: false });
  expect(faults).toEqual(["turn_end/deaf: aborted"]);
});

test("a rejection after it was abandoned is ignored", async () => {
  const { promise, reject } = Promise.withResolvers<never>();
  const given = unlessAborted(promise, AbortSignal.abort(new Error("aborted")), 10);
  const refused = expect(given).rejects.toThrow("aborted");
  await vi.advanceTimersByTimeAsync(10);
  await refused;
  reject(new Error("too late"));
});
