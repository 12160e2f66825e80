import { describe, expect, test } from "vitest";
import { buildMessages } from "../../../context/document/build.ts";
import type { ContextItem, ContextTarget } from "../../../context/document/document.ts";
import { CARRIER_TYPE } from "../../../protocol/link.ts";
import type { BuiltMessage, Meta } from "../../../protocol/link-context.ts";
import { text } from "./items.ts";

const target: ContextTarget = { api: "anthropic-messages", provider: "anthropic", id: "m", takesImages: true };
const model = { api: target.api, provider: target.provider, id: target.id };
const other = { ...model, id: "another" };

function build(item: Omit<ContextItem, "timestamp">): BuiltMessage | undefined {
  return buildMessages([{ ...item, timestamp: 7 }], target).messages[0];
}

function assistant(item: Partial<ContextItem>): readonly Meta[] {
  const message = build({ role: "assistant", content: [], ...item });
  return message?.role === "assistant" ? message.content : [];
}

function native(
  eventType: string,
  meta: Meta,
  content: ContextItem["content"] = text("What there was."),
): BuiltMessage | undefined {
  return build({ role: "event", eventType, content, meta: { native: meta } });
}

describe("a message", () => {
  test("of an assistant is complete, without usage, and of the target's model if none is named", () => {
    const calls = [{ id: "c", name: "bash", arguments: { command: "ls" } }];
    const usage = { input: 5, cost: { total: 9 } };
    expect(build({ role: "assistant", content: text("Well."), toolCalls: calls, usage, stopReason: "length" })).toEqual(
      {
        role: "assistant",
        content: [
          { type: "text", text: "Well." },
          { type: "toolCall", id: "c", name: "bash", arguments: { command: "ls" } },
        ],
        api: "anthropic-messages",
        provider: "anthropic",
        model: "m",
        usage: {
          ...{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 },
          cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
        },
        stopReason: "toolUse",
        timestamp: 7,
      },
    );
    expect(build({ role: "assistant", content: text("Done."), model: other })).toMatchObject({
      model: "another",
      stopReason: "stop",
    });
  });

  test("of a tool's result is complete", () => {
    expect(
      build({ role: "toolResult", toolCallId: "c", toolName: "bash", content: text("4"), details: { a: 1 } }),
    ).toEqual({
      role: "toolResult",
      toolCallId: "c",
      toolName: "bash",
      content: [{ type: "text", text: "4" }],
      details: { a: 1 },
      isError: false,
      timestamp: 7,
    });
  });

  test("has no empty texts", () => {
    expect(build({ role: "user", content: [...text(""), ...text("a"), ...text("")] })).toEqual({
      role: "user",
      content: [{ type: "text", text: "a" }],
      timestamp: 7,
    });
    expect(assistant({ content: text("") })).toEqual([]);
  });

  test("of the target's model keeps its reasoning; of another or an unknown model it does not", () => {
    const content = [{ type: "reasoning" as const, text: "Hm.", signature: "s", redacted: true }];
    expect(assistant({ content, model })).toEqual([
      { type: "thinking", thinking: "Hm.", thinkingSignature: "s", redacted: true },
    ]);
    expect(assistant({ content, model: other })).toEqual([]);
    expect(assistant({ content })).toEqual([]);
  });

  test("of the target's model is built from its own blocks, whatever its content and calls say", () => {
    const blocks = [
      { type: "thinking", thinking: "", thinkingSignature: "s" },
      { type: "text", text: "a", textSignature: "t" },
      { type: "toolCall", id: "c|1", name: "bash", arguments: { command: "ls" }, thoughtSignature: "u" },
    ];
    const toolCalls = [{ id: "c|1", name: "bash", arguments: {} }];
    expect(assistant({ blocks, toolCalls, content: text("b"), model })).toEqual(blocks);
    expect(assistant({ blocks, toolCalls: [{ id: "c|1-2", name: "bash", arguments: {} }], model })[2]).toEqual({
      ...blocks[2],
      id: "c|1-2",
    });
    expect(assistant({ blocks, toolCalls, content: text("b"), model: other })).toHaveLength(2);
  });

  test.each<[string, readonly Meta[]]>([
    ["of an unknown kind", [{ type: "image", data: "AA==" }]],
    ["without its text", [{ type: "text" }]],
    ["of a call without arguments", [{ type: "toolCall", id: "c", name: "bash" }]],
    ["of calls that are not the item's", [{ type: "toolCall", id: "c", name: "bash", arguments: {} }]],
    ["of no blocks", []],
  ])("does not take a block %s from a document", (_, blocks) => {
    expect(assistant({ blocks, content: text("instead"), model })).toEqual(text("instead"));
  });
});

describe("an event", () => {
  test("is a custom message whose first line names it", () => {
    expect(build({ role: "event", eventType: "git.push", content: text("pushed"), meta: { ref: "main" } })).toEqual({
      role: "custom",
      customType: "pi-rpcd.event",
      content: [{ type: "text", text: "Event: git.push\npushed" }],
      display: true,
      details: { eventType: "git.push", meta: { ref: "main" } },
      timestamp: 7,
    });
  });

  test("of several lines, of an image or of nothing has one first line", () => {
    const image = { type: "image" as const, data: "AA==", mimeType: "image/png" };
    expect(build({ role: "event", eventType: "a\r\nEvent: b", content: [image] })).toMatchObject({
      content: [{ type: "text", text: "Event: a Event: b" }, image],
      details: { eventType: "a\r\nEvent: b" },
    });
    expect(build({ role: "event", eventType: "a\ud800", content: [] })).toMatchObject({
      content: text("Event: a\ufffd"),
    });
    expect(build({ role: "event", content: [] })).toMatchObject({ content: text("Event: unnamed"), details: {} });
  });

  test("of pi's own type becomes pi's own entry again", () => {
    expect(native("pi.compaction", { type: "compaction", tokensBefore: 9 })).toEqual({
      role: "compactionSummary",
      summary: "What there was.",
      tokensBefore: 9,
      timestamp: 7,
    });
    expect(native("pi.branchSummary", { type: "branch_summary", fromId: "0a" })).toEqual({
      role: "branchSummary",
      summary: "What there was.",
      fromId: "0a",
      timestamp: 7,
    });
    expect(
      native("pi.bash", { type: "bashExecution", command: "ls", exitCode: null, excludeFromContext: true }, []),
    ).toEqual({
      role: "bashExecution",
      command: "ls",
      output: "",
      exitCode: undefined,
      cancelled: false,
      truncated: false,
      excludeFromContext: true,
      timestamp: 7,
    });
    expect(native("pi.custom:x", { type: "custom_message", customType: "x", display: false, details: [1] })).toEqual({
      role: "custom",
      customType: "x",
      content: text("What there was."),
      display: false,
      details: [1],
      timestamp: 7,
    });
  });

  test.each<[string, string, Meta]>([
    ["of another type", "pi.bash", { type: "compaction", tokensBefore: 9 }],
    ["without its numbers", "pi.compaction", { type: "compaction" }],
    ["of another name", "pi.custom:x", { type: "custom_message", customType: "y" }],
    ["that steers the helper", `pi.custom:${CARRIER_TYPE}`, { type: "custom_message", customType: CARRIER_TYPE }],
    ["that is not reserved", "pi.future", { type: "future" }],
  ])("is an ordinary one where what it says of pi's is not sound: %s", (_, eventType, meta) => {
    expect(native(eventType, meta)).toMatchObject({ role: "custom", customType: "pi-rpcd.event" });
  });

  test("does not carry the mark of a delivery", () => {
    const details = { a: 1, "pi-rpcd": { deliveryId: "d" } };
    const message = native("pi.custom:x", { type: "custom_message", customType: "x", details });
    expect(message).toMatchObject({ details: { a: 1 } });
    expect(JSON.stringify(message)).not.toContain("deliveryId");
  });
});

describe("a conversation", () => {
  const items: readonly ContextItem[] = [
    { role: "system", content: text("One."), timestamp: 1 },
    { role: "user", content: text("Two."), timestamp: 2 },
    { role: "event", eventType: "e", content: text("Three."), timestamp: 3 },
    { role: "system", content: text("Four."), timestamp: 4 },
    {
      role: "event",
      eventType: "pi.compaction",
      content: text("Five."),
      meta: { native: { type: "compaction", tokensBefore: 5 } },
      timestamp: 5,
    },
  ];
  const roles = (options: Parameters<typeof buildMessages>[2]): readonly string[] =>
    buildMessages(items, target, options).messages.map(({ role }) => role);

  test("has its system items in its instructions, in their order", () => {
    expect(buildMessages(items, target).instructions).toBe("One.\n\nFour.");
    expect(roles({})).toEqual(["user", "custom", "compactionSummary"]);
    expect(buildMessages(items, target, { systemNodes: "drop" })).not.toHaveProperty("instructions");
  });

  test("can be without its events; a summary of the conversation is not an event", () => {
    expect(roles({ events: "drop" })).toEqual(["user", "compactionSummary"]);
  });
});
