import { describe, expect, test } from "vitest";
import type { PreparedContext } from "../../../context/document/built.ts";
import type { ContextTarget } from "../../../context/document/document.ts";
import type { PrepareOptions } from "../../../context/document/options.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { readDocument } from "../../../context/document/read-document.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import type { BuiltMessage } from "../../../protocol/link-context.ts";

const target: ContextTarget = { api: "anthropic-messages", provider: "anthropic", id: "m", takesImages: true };

function tree(nodes: readonly Readonly<Record<string, unknown>>[], leafId = "n5"): unknown {
  return { format: "pi-rpcd/context", version: 1, source: { kind: "tree", id: "run-17" }, leafId, nodes };
}

const nodes = [
  { id: "n0", parentId: null, role: "system", content: "You review patches.", timestamp: 1 },
  { id: "n1", parentId: "n0", role: "user", content: [{ type: "text", text: "What is 2+2?" }], timestamp: 2 },
  {
    ...{ id: "n2", parentId: "n1", role: "toolCall", toolCallId: "c1", toolName: "bash", timestamp: 3 },
    arguments: { command: "expr 2 + 2" },
  },
  {
    ...{ id: "n3", parentId: "n2", role: "toolResult", toolCallId: "c1", toolName: "bash", timestamp: 4 },
    ...{ content: "4", isError: false },
  },
  {
    ...{ id: "n4", parentId: "n1", role: "assistant", content: "The answer is 4.", stopReason: "stop", timestamp: 5 },
    model: { api: "anthropic-messages", provider: "anthropic", id: "m" },
  },
  {
    ...{ id: "n5", parentId: "n4", role: "event", eventType: "git.push", content: "pushed 3 commits", timestamp: 6 },
    meta: { ref: "main" },
  },
];

function prepare(document: unknown, options: PrepareOptions = {}): PreparedContext {
  return prepareContext(document, options, target, defaultContextLimits);
}

function said(message: BuiltMessage | undefined): string {
  if (message === undefined || !("content" in message) || typeof message.content === "string")
    return String(message?.role);
  const parts = message.content.map((part) => ("text" in part ? part.text : part.type));
  return `${message.role}: ${parts.join(" ")}`;
}

describe("a document", () => {
  test("becomes messages with separate calls and results, and instructions", () => {
    const { messages, instructions, counts, source, nodeId, repairs } = prepare(tree(nodes));
    expect(messages.map(said)).toEqual([
      "user: What is 2+2?",
      "assistant: toolCall",
      "toolResult: 4",
      "assistant: The answer is 4.",
      "custom: Event: git.push\npushed 3 commits",
    ]);
    expect(instructions).toBe("You review patches.");
    expect(counts).toEqual({ nodes: 6, items: 6, pairs: 1, repairs: {} });
    expect({ source, nodeId, repairs }).toEqual({ source: { kind: "tree", id: "run-17" }, nodeId: "n5", repairs: [] });
  });

  test("that was already parsed gives the same", () => {
    expect(prepare(readDocument(tree(nodes), defaultContextLimits))).toEqual(prepare(tree(nodes)));
  });

  test("is repaired, and each repair is counted", () => {
    const orphan = {
      id: "n3",
      parentId: "n1",
      role: "toolResult",
      toolCallId: "c9",
      toolName: "x",
      content: "",
      timestamp: 4,
    };
    const broken = tree([...nodes.slice(0, 2), orphan, ...nodes.slice(4)]);
    const { counts, repairs, messages } = prepare(broken);
    expect(counts.repairs).toEqual({ orphan_result: 1 });
    expect(repairs).toEqual([{ code: "orphan_result", nodeId: "n3", detail: expect.any(String) }]);
    expect(messages).toHaveLength(3);
    expect(() => prepare(broken, { repair: false })).toThrow(
      expect.objectContaining({
        kind: "context_invalid",
        data: expect.objectContaining({ code: "orphan_result", nodeId: "n3" }),
      }),
    );
  });

  test("whose first events are left out still begins with a user", () => {
    const items = [
      { role: "event", eventType: "ci", content: "red", timestamp: 1 },
      { role: "assistant", content: "Oh.", timestamp: 2 },
    ];
    const document = { format: "pi-rpcd/context", version: 1, items };
    expect(prepare(document).messages.map(said)).toEqual(["custom: Event: ci\nred", "assistant: Oh."]);
    expect(prepare(document, { events: "drop" }).messages.map(said)).toEqual([
      "user: (The conversation starts here.)",
      "assistant: Oh.",
    ]);
    expect(() => prepare({ ...document, items: items.slice(0, 1) }, { events: "drop" })).toThrow(
      expect.objectContaining({ data: expect.objectContaining({ code: "nothing_selected" }) }),
    );
  });

  test("that begins with a command hidden from the model still begins with a user", () => {
    const native = { type: "bashExecution", command: "ls", excludeFromContext: true };
    const items = [
      { role: "event", eventType: "pi.bash", content: "a.ts", meta: { native }, timestamp: 1 },
      { role: "assistant", content: "Oh.", timestamp: 2 },
    ];
    const { messages, counts } = prepare({ format: "pi-rpcd/context", version: 1, items });
    expect(messages.map(said)).toEqual(["user: (The conversation starts here.)", "assistant: Oh."]);
    expect(counts.repairs).toEqual({ leading_assistant: 1 });
  });

  test("up to a user's node excludes it, because its text is the prompt", () => {
    expect(() => prepare(tree(nodes), { nodeId: "n1", systemNodes: "drop" })).toThrow(
      expect.objectContaining({ kind: "context_invalid" }),
    );
    const alone = prepare(tree(nodes), { nodeId: "n1" });
    expect(alone).toMatchObject({ messages: [], instructions: "You review patches.", nodeId: "n1" });
    expect(prepare(tree(nodes), { nodeId: "n1", until: "through" }).messages.map(said)).toEqual(["user: What is 2+2?"]);
  });

  test("has its results capped before the budget is applied, and complete by default", () => {
    const long = "0123456789".repeat(5_120);
    const large = tree(nodes.map((node) => (node.id === "n3" ? { ...node, content: long } : node)));
    expect(said(prepare(large).messages[2])).toBe(`toolResult: ${long}`);
    const { messages, dropped } = prepare(large, { toolResults: { perTool: { bash: 400 } }, maxTokens: 700 });
    expect(said(messages[2])).toMatch(/^toolResult: 0123[\s\S]* of 51200 characters left out [\s\S]*789$/);
    expect(dropped).toEqual({ messages: 0, tokens: 0 });
  });
});
