import { expect, test } from "vitest";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { compositionOf } from "../../../extension/provider/composition.ts";
import { DELIVERY_MARK } from "../../../protocol/link.ts";
import { unchecked } from "../../helpers/partial.ts";

const messages = (...given: readonly unknown[]): readonly AgentMessage[] => unchecked(given);
const text = (length: number) => ({ type: "text", text: "x".repeat(length) });

test("each kind of text is counted once", () => {
  const push = { [DELIVERY_MARK]: { deliveryId: "d1" } };
  const made = compositionOf(
    messages(
      {
        role: "system",
        content: [text(10)],
        sections: { ab: "c", de: null },
        toolsAdded: [{ name: "read", parameters: { type: "object", maximum: 12 } }],
      },
      { role: "user", content: "1234😀" },
      { role: "user", content: [text(4), { type: "image", data: "a".repeat(100), mimeType: "image/png" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "123", thinkingSignature: "not counted" },
          text(5),
          { type: "toolCall", id: "not counted", name: "bash", arguments: { command: "ls", all: true } },
        ],
      },
      { role: "toolResult", toolName: "bash", content: [text(7)], details: { not: "counted" } },
      { role: "bashExecution", command: "ls", output: "a b" },
      { role: "bashExecution", command: "ls", output: "not shown to the model", excludeFromContext: true },
      { role: "compactionSummary", summary: "12345678" },
      { role: "branchSummary", summary: "1" },
      { role: "custom", customType: "note", content: "123456789", details: push },
      { role: "custom", customType: "other", content: [text(2)] },
    ),
  );
  expect(made).toEqual({
    system: 10 + "abc".length + "denull".length,
    tools: "namereadparameterstypeobjectmaximum12".length,
    user: 6 + 4,
    images: 100,
    thinking: 3,
    assistant: 5,
    toolCalls: "bashcommandlsalltrue".length,
    toolResults: 7,
    bash: 5,
    summaries: 9,
    pushes: 9,
    custom: 2,
  });
});

test("messages of any form are counted as far as they have texts", () => {
  let deep: unknown = "12";
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
  const odd = messages(
    { role: "user" },
    { role: "user", content: null },
    { role: "user", content: [null, 7, { type: "text" }, { type: "other", text: "x" }] },
    { role: "assistant", content: [{ type: "toolCall", name: "t", arguments: deep }] },
    { role: "unknown", content: "x" },
  );
  expect(compositionOf(odd)).toEqual({ toolCalls: 3 });
  expect(compositionOf([])).toEqual({});
});

test("a value with a cycle or too many parts ends the count", () => {
  const cycle: unknown[] = ["12"];
  cycle.push(cycle, cycle);
  const ring: Record<string, unknown> = {};
  ring["next"] = ring;
  for (const value of [cycle, ring, Array(1_000_001).fill(1)]) {
    const call = { type: "toolCall", name: "t", arguments: value };
    expect(() => compositionOf(messages({ role: "assistant", content: [call] }))).toThrow(RangeError);
  }
});
