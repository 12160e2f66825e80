import { expect, test } from "vitest";
import type { TokenEstimator } from "../../../../context/parts/estimator/estimator.ts";
import { WindowUsage } from "../../../../context/pruning/usage.ts";
import type { AgentMessage } from "../../../../extension/pi-types.ts";
import { defaultOptimisation } from "../../../../protocol/optimisation/config.ts";
import { defaultPruning } from "../../../../protocol/pruning/config.ts";
import { partial, unchecked } from "../../../helpers/partial.ts";
import { fakeHost } from "../fake-host.ts";
import { Branch } from "./branch.ts";

/** A session whose messages have one token per character, with an estimator that is never wrong. */
class Window {
  readonly branch = new Branch();
  readonly #host = fakeHost(this.branch.context);
  /** Replacements of messages, by their text. */
  readonly blocks = new Map<string, string>();
  isOff = false;
  readonly usage: WindowUsage;

  isCompacting = false;

  constructor() {
    this.branch.window = 1_000;
    const rendered = (messages: readonly AgentMessage[]) => messages.flatMap((message) => this.#rendered(message));
    const estimator = partial<TokenEstimator>({
      message: (message: AgentMessage) => textOf(message).length,
      request: (messages: readonly AgentMessage[]) => messages.reduce((sum, one) => sum + textOf(one).length, 0),
      context: () => this.#context(),
    });
    const host = {
      ...this.#host,
      estimator,
      pruning: () => ({ ...defaultPruning, enabled: true }),
      compaction: () => ({ ...defaultOptimisation.compaction, enabled: this.isCompacting }),
      off: () => (this.isOff ? "Off." : undefined),
      blocks: { rendered },
    };
    this.#host.pipeline.use("context_with_system", "blocks", (messages) =>
      this.isOff ? undefined : rendered(messages),
    );
    this.usage = new WindowUsage(host);
  }

  get next(): number | undefined {
    return this.usage.next(this.branch.context)?.tokens;
  }

  /** A request with an answer that reports its usage. */
  request(answer: string, reports = true): void {
    const messages = this.branch.messages.map(({ message }) => message);
    const made = this.#host.pipeline.run("context_with_system", structuredClone(messages), this.branch.context);
    const input = reports ? made.reduce((sum, one) => sum + textOf(one).length, 0) : 0;
    const message = {
      role: "assistant",
      content: [{ type: "text", text: answer }],
      stopReason: "stop",
      usage: { input, output: reports ? answer.length : 0, cacheRead: 0, cacheWrite: 0 },
      timestamp: 10_000 + this.branch.entries.length,
    };
    this.#host.pipeline.run("message_end", unchecked(structuredClone(message)), this.branch.context);
    this.branch.message(message);
  }

  #rendered(message: AgentMessage): AgentMessage[] {
    const block = this.blocks.get(textOf(message));
    if (block === undefined) return [message];
    return block === "" ? [] : [{ ...message, content: [{ type: "text", text: block }] } as AgentMessage];
  }

  /** As the estimator counts: the newest report, and the changes since. */
  #context(): number {
    const messages = this.branch.messages.map(({ message }) => message);
    const at = messages.findLastIndex((message) => message.role === "assistant" && message.usage.input > 0);
    const report = messages[at];
    const known = report?.role === "assistant" ? report.usage.input + report.usage.output : 0;
    return messages.slice(at + 1).reduce((sum, one) => sum + textOf(one).length, known);
  }
}

function textOf(message: AgentMessage): string {
  const { content } = message as { content: readonly { text?: string }[] };
  return content.map(({ text }) => text ?? "").join("");
}

test("usage is that of the next request: reduced by a new block before any response reports it, and not twice", () => {
  const window = new Window();
  window.branch.user("x".repeat(500));
  window.request("y".repeat(100));
  window.branch.user("z".repeat(50));
  expect(window.next).toBe(650);
  window.blocks.set("x".repeat(500), "block");
  expect(window.next).toBe(155);
  window.request("w".repeat(10));
  expect(window.next).toBe(165);
  // Opened again.
  window.blocks.clear();
  expect(window.next).toBe(660);
});

test("while pruning is off usage is that of the whole messages", () => {
  const window = new Window();
  window.branch.user("x".repeat(500));
  window.blocks.set("x".repeat(500), "block");
  window.request("y");
  expect(window.next).toBe(6);
  window.isOff = true;
  expect(window.next).toBe(501);
});

test("an answer without a report does not change the known usage", () => {
  const window = new Window();
  window.branch.user("x".repeat(300));
  window.request("y".repeat(10));
  window.blocks.set("x".repeat(300), "");
  window.request("w".repeat(20), false);
  expect(window.next).toBe(30);
});

test("usage is unknown directly after a compaction, and for an unknown window", () => {
  const window = new Window();
  const first = window.branch.user("x".repeat(300));
  expect(window.next).toBe(300);
  window.request("y".repeat(10));
  window.branch.compact(first);
  expect(window.next).toBeUndefined();
  window.request("w");
  expect(window.next).toBeDefined();
  window.branch.window = undefined;
  expect(window.next).toBeUndefined();
});

test("usage has the limits of the model as shares", () => {
  const window = new Window();
  window.branch.user("x".repeat(300));
  expect(window.usage.next(window.branch.context)).toEqual({
    tokens: 300,
    window: 1_000,
    share: 0.3,
    max: 0.8,
    min: 0.4,
  });
});

test("the usage of a request in progress is that of its messages", () => {
  const window = new Window();
  window.branch.user("x".repeat(300));
  window.request("y".repeat(10));
  const made = [{ role: "user", content: [{ type: "text", text: "abc" }], timestamp: 1 }] as unknown as AgentMessage[];
  expect(window.usage.of(made, window.branch.context)?.tokens).toBe(3);
});

test("the limits are below the size at which the session is compacted, also if prices and growth lower it", () => {
  const window = new Window();
  window.isCompacting = true;
  window.branch.user("x".repeat(8_000));
  window.request("y".repeat(10));
  window.branch.user("z".repeat(2_000));
  window.request("y".repeat(10));
  const dear = { input: 6, output: 30, cacheRead: 0.6, cacheWrite: 7.5 };
  const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };
  const { context } = window.branch;
  const model = {
    ...context.model,
    contextWindow: 200_000,
    cost: { ...cost, tiers: [{ ...dear, inputTokensAbove: 32_000 }] },
  };
  const { max = 0 } = window.usage.next({ ...context, model } as typeof context) ?? {};
  expect(max * 200_000).toBeLessThan(30_000);
});
