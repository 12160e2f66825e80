import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { afterEach, describe, expect, test, vi } from "vitest";
import { doesNotFit, summarise } from "../../../../../context/parts/compaction/summary.ts";
import type { AgentMessage } from "../../../../../extension/pi-types.ts";

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

describe("the last request with an instruction", () => {
  const usage = {
    ...{ input: 10, output: 2, cacheRead: 50, cacheWrite: 0, totalTokens: 62 },
    cost: { input: 1, output: 2, cacheRead: 3, cacheWrite: 0, total: 6 },
  };
  const saying = (...content: readonly object[]) => ({ role: "assistant", stopReason: "stop", usage, content });
  const text = { type: "text", text: "So far." };
  const payload = { model: "m", messages: [{ role: "user", content: "Hello." }], max_tokens: 4_000 };
  const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
  const message = { role: "user", content: "x".repeat(40_000) } as unknown as AgentMessage;
  const whole = {
    ...request,
    model: { ...request.model, api: "openai-completions", cost } as NonNullable<ExtensionContext["model"]>,
    messages: [message],
    last: { payload, tokens: 50_000, cachedTokens: 50_000, isThinking: false, isPassing: () => false },
  };

  /** A provider that makes a request for each answer in turn, and the requests that it sends. */
  function provider(answers: readonly object[], made: (asked: object) => unknown = () => payload) {
    const sent: unknown[] = [];
    const left = [...answers];
    const streamSimple = (_model: unknown, asked: object, options: { onPayload?: (made: unknown) => unknown }) => ({
      result: async () => {
        const own = made(asked);
        sent.push(own === undefined ? asked : (options.onPayload?.(own) ?? asked));
        return left.shift();
      },
    });
    const sessionManager = { getSessionId: () => "s-1" };
    return { sent, ctx: { sessionManager, modelRegistry: { streamSimple } } as unknown as ExtensionContext };
  }
  const isRepeated = (one: unknown): boolean => Object.hasOwn(one as object, "max_tokens");

  test("is sent if it costs less than the conversation as a text", async () => {
    const { sent, ctx } = provider([saying(text)]);
    expect(await summarise(whole, ctx)).toEqual({ text: "So far.", usage });
    expect(sent).toEqual([
      { model: "m", messages: [...payload.messages, { role: "user", content: expect.any(String) }], max_tokens: 300 },
    ]);
    const dear = provider([saying(text)]);
    await summarise({ ...whole, last: { ...whole.last, cachedTokens: 0 } }, dear.ctx);
    expect(dear.sent.map(isRepeated)).toEqual([false]);
  });

  test("is sent at any price if only it fits, and never if it does not fit", async () => {
    const long = { ...whole, messages: [{ ...message, content: "x".repeat(100_000) } as unknown as AgentMessage] };
    const { sent, ctx } = provider([saying(text)]);
    await summarise({ ...long, last: { ...whole.last, cachedTokens: 0 } }, ctx);
    expect(sent.map(isRepeated)).toEqual([true]);
    const full = provider([saying(text)]);
    await summarise({ ...whole, last: { ...whole.last, tokens: 99_000, cachedTokens: 99_000 } }, full.ctx);
    expect(full.sent.map(isRepeated)).toEqual([false]);
    expect(await summarise({ ...long, last: undefined }, full.ctx)).toMatchObject({ failed: doesNotFit });
  });

  test.for<[string, readonly object[], ((asked: object) => unknown)?]>([
    [
      "the answer calls a tool",
      [saying(text, { type: "toolCall", id: "1", name: "bash", arguments: {} }), saying(text)],
    ],
    ["the provider does not send the payload", [saying(text), saying(text)], () => undefined],
  ])("is replaced by the text if %s, and both are paid", async ([, answers, made]) => {
    const { sent, ctx } = provider(answers, made);
    expect(await summarise(whole, ctx)).toMatchObject({
      text: "So far.",
      usage: { input: 20, cacheRead: 100, totalTokens: 124, cost: { total: 12 } },
    });
    expect(sent).toHaveLength(2);
    expect(isRepeated(sent[1])).toBe(false);
  });

  test("is not sent to another model than before", async () => {
    const { sent, ctx } = provider([saying(text)], () => ({ model: "another" }));
    expect(await summarise(whole, ctx)).toEqual({ text: "So far.", usage });
    expect(sent.map(isRepeated)).toEqual([false]);
  });

  test("is not followed by the text after an abort", async () => {
    const run = new AbortController();
    const { sent, ctx } = provider([{ ...saying(), stopReason: "aborted" }], () => {
      run.abort();
      return payload;
    });
    expect(await summarise(whole, { ...ctx, signal: run.signal } as ExtensionContext)).toMatchObject({ usage });
    expect(sent).toHaveLength(1);
  });
});
