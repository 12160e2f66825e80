import { describe, expect, test } from "vitest";
import { buildMessages } from "../../../context/document/build.ts";
import { messageFault } from "../../../context/document/built-check.ts";
import type { ContextItem, ContextTarget } from "../../../context/document/document.ts";
import { dice, someItems, text } from "./items.ts";

const target: ContextTarget = { api: "a", provider: "p", id: "m", takesImages: true };
const calls = [{ id: "c", name: "bash", arguments: {} }];
const items: readonly ContextItem[] = [
  { role: "user", content: [...text("a"), { type: "image", data: "AA==", mimeType: "image/png" }], timestamp: 1 },
  { role: "assistant", content: text("a"), toolCalls: calls, timestamp: 2 },
  { role: "toolResult", toolCallId: "c", toolName: "bash", content: [], timestamp: 3 },
];

describe("a message", () => {
  test("that was built is valid, whatever the conversation", () => {
    for (let seed = 0; seed < 30; seed += 1) {
      const { messages } = buildMessages([...items, ...someItems(dice(seed), 4)], target);
      expect(messages.map(messageFault).filter((fault) => fault !== undefined)).toEqual([]);
    }
  });

  const [user, assistant, result] = buildMessages(items, target).messages;

  test.each<[string, unknown, string]>([
    ["is none", null, "message"],
    ["has no role", { timestamp: 1 }, "role"],
    ["has an unknown role", { ...user, role: "constructor" }, "role"],
    ["has text where parts must be", { ...result, content: "4" }, "content"],
    ["has an empty text", { ...user, content: [{ type: "text", text: "" }] }, "content"],
    ["has an invalid part", { ...user, content: [{ type: "toString", text: "a" }] }, "content"],
    ["has a call without arguments", { ...assistant, content: [{ type: "toolCall", id: "c", name: "n" }] }, "content"],
    ["has no usage", { ...assistant, usage: undefined }, "usage"],
    ["has usage that would be paid for", { ...assistant, usage: { input: 1 } }, "usage"],
    ["has ended in another way", { ...assistant, stopReason: "aborted" }, "stopReason"],
    ["answers no call", { ...result, toolCallId: "" }, "toolCallId"],
    ["has no time", { ...user, timestamp: Number.NaN }, "timestamp"],
    ["has a field that pi does not know", { ...user, nodeId: "n1" }, "nodeId"],
  ])("is not sound that %s", (_, message, fault) => {
    expect(messageFault(message)).toBe(fault);
  });
});
