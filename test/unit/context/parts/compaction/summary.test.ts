import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { afterEach, expect, test, vi } from "vitest";
import { summarise } from "../../../../../context/parts/compaction/summary.ts";

afterEach(() => void vi.useRealTimers());

const request = {
  model: { provider: "p", id: "m", contextWindow: 100_000 } as NonNullable<ExtensionContext["model"]>,
  messages: [],
  maxTokens: 300,
  prompt: undefined,
  tokensOf: (text: string) => text.length,
};

/** A provider whose stream returns this, whatever happens to the signal. */
function contextOf(result: Promise<unknown>, signal: AbortSignal): ExtensionContext {
  return { signal, modelRegistry: { streamSimple: () => ({ result: () => result }) } } as unknown as ExtensionContext;
}

test("a provider that ignores the signal does not block an aborted run", async () => {
  const run = new AbortController();
  const late = Promise.withResolvers<unknown>();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const summary = summarise(request, contextOf(late.promise, run.signal));
  run.abort();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await summary).toEqual({ failed: expect.stringContaining("aborted"), usage: undefined });
  late.reject(new Error("Nobody waits for this any more."));
});

test("a provider that observes the signal reports the cost of the aborted summary", async () => {
  const run = new AbortController();
  const usage = { input: 1, output: 1 };
  const late = Promise.withResolvers<unknown>();
  const summary = summarise(request, contextOf(late.promise, run.signal));
  run.abort();
  late.resolve({ role: "assistant", stopReason: "aborted", usage, content: [] });
  expect(await summary).toMatchObject({ failed: expect.any(String), usage });
});

test("a summary is the text of the answer", async () => {
  const usage = { input: 1, output: 1 };
  const answer = { role: "assistant", stopReason: "stop", usage, content: [{ type: "text", text: " So far. " }] };
  const given = contextOf(Promise.resolve(answer), new AbortController().signal);
  expect(await summarise(request, given)).toEqual({ text: "So far.", usage });
});
