import { describe, expect, test } from "vitest";
import { prepareContext } from "../../../context/document/prepare.ts";
import { readDocument } from "../../../context/document/read-document.ts";
import { contextForStructured } from "../../../context/document/select.ts";
import { type ContextLimits, defaultContextLimits } from "../../../protocol/context-limits.ts";
import { unchecked } from "../../helpers/partial.ts";
import { answer, call, calling, chain, list, png, type Raw, refusal, result, target, tree, user } from "./documents.ts";

function read(value: unknown, limits: Partial<ContextLimits> = {}) {
  return readDocument(value, { ...defaultContextLimits, ...limits });
}

describe("shape", () => {
  test("the first finding is the message, and up to 20 are listed", () => {
    const nodes = Array.from({ length: 30 }, (_, index) => ({ id: `n${index}`, parentId: null, ...user }));
    const document = tree(nodes.map((node, index) => (index < 3 ? node : { ...node, role: "assitant" })));
    const { kind, status, message, data } = refusal(() => read(document));
    expect({ kind, status }).toEqual({ kind: "invalid_params", status: 400 });
    expect(message).toBe(
      'context.document.nodes[3].role: expected system, user, assistant, toolCall, toolResult, event; got "assitant"',
    );
    expect(data["errors"]).toHaveLength(20);
    expect((data["errors"] as Raw[])[0]).toEqual({
      pointer: "/context/document/nodes/3/role",
      expected: "system, user, assistant, toolCall, toolResult, event",
      got: "assitant",
    });
    expect(data).toMatchObject({ code: "unknown_role", nodeId: "n3" });
  });

  test.each([
    ["null", null, "context.document: expected an object; got null"],
    ["an array", [], "context.document: expected an object; got an array"],
    ["a text", "x", 'context.document: expected an object; got "x"'],
    ["another format", { ...list([]), format: "x" }, 'context.document.format: expected pi-rpcd/context; got "x"'],
    ["another version", { ...list([]), version: 2 }, "context.document.version: expected 1; got 2"],
    [
      "neither list",
      { format: "pi-rpcd/context", version: 1 },
      'context.document: expected either nodes or items; got "neither"',
    ],
    ["both lists", { ...list([]), nodes: [] }, 'context.document: expected either nodes or items; got "both"'],
    ["no list", { ...list([]), items: {} }, "context.document.items: expected an array of items; got an object"],
    ["a leaf that is not a text", { ...tree([]), leafId: 5 }, "context.document.leafId: expected a text; got 5"],
    [
      "a source that is no object",
      { ...tree([]), source: "x" },
      'context.document.source: expected an object; got "x"',
    ],
    ["an invalid node", tree(unchecked([5])), "context.document.nodes[0]: expected a node; got 5"],
    ["no id", tree([user]), "context.document.nodes[0].id: expected a text of 1 to 1024 bytes; got nothing"],
    [
      "a parent that is no text",
      chain({ ...user, parentId: 5 }),
      "context.document.nodes[0].parentId: expected a text or null; got 5",
    ],
    [
      "no parent",
      tree([
        { id: "a", parentId: null, ...user },
        { id: "b", parent: "a", ...user },
      ]),
      "context.document.nodes[1].parentId: expected a text or null; got nothing",
    ],
    [
      "content",
      chain({ ...user, content: 5 }),
      "context.document.nodes[0].content: expected a text or an array of blocks; got 5",
    ],
    ["a block", chain({ ...user, content: [5] }), "context.document.nodes[0].content[0]: expected a block; got 5"],
    [
      "a block's type",
      chain({ ...user, content: [{ type: "video" }] }),
      'context.document.nodes[0].content[0].type: expected text, image, reasoning; got "video"',
    ],
    [
      "a block's text",
      chain({ ...user, content: [{ type: "text" }] }),
      "context.document.nodes[0].content[0].text: expected a text; got nothing",
    ],
    [
      "a result",
      chain({ ...result("a"), result: { a: 1 } }),
      "context.document.nodes[0].result: expected a text or an array of blocks; got an object",
    ],
    [
      "an id of a call",
      chain({ ...call("a"), toolCallId: 7 }),
      "context.document.nodes[0].toolCallId: expected a text; got 7",
    ],
    [
      "a flag",
      chain({ ...result("a"), isError: "no" }),
      'context.document.nodes[0].isError: expected true or false; got "no"',
    ],
    [
      "a model",
      chain({ ...answer, model: { api: "x" } }),
      "context.document.nodes[0].model.provider: expected a text; got nothing",
    ],
    ["meta", chain({ ...answer, meta: [] }), "context.document.nodes[0].meta: expected an object; got an array"],
    [
      "blocks",
      chain({ ...answer, blocks: [1] }),
      "context.document.nodes[0].blocks: expected an array of objects; got an array",
    ],
    [
      "calls",
      chain({ ...answer, toolCalls: {} }),
      "context.document.nodes[0].toolCalls: expected an array of tool calls; got an object",
    ],
    [
      "a call",
      chain({ ...answer, toolCalls: [null] }),
      "context.document.nodes[0].toolCalls[0]: expected a tool call; got null",
    ],
    [
      "a call's name",
      chain({ ...answer, toolCalls: [{ id: "a", name: 1 }] }),
      "context.document.nodes[0].toolCalls[0].name: expected a text; got 1",
    ],
    [
      "an item's node",
      list([{ ...user, nodeId: 1 }]),
      "context.document.items[0].nodeId: expected a text of 1 to 1024 bytes; got 1",
    ],
    ["no JSON", chain({ ...user, meta: { a: 1n } }), 'context.document: expected JSON; got "something else"'],
  ])("%s is named", (_, value, message) => {
    expect(refusal(() => read(value))).toMatchObject({ kind: "invalid_params", message });
  });

  test("null counts as absent in every optional field", () => {
    const optional = [
      "toolCallId",
      "toolName",
      "isError",
      "eventType",
      "meta",
      "model",
      "stopReason",
      "usage",
      "details",
      "blocks",
      "toolCalls",
      "result",
    ];
    for (const node of [user, answer, result("a", "4", { toolCallId: null }), { role: "event", content: "x" }]) {
      const empty = Object.fromEntries(optional.map((name) => [name, null]));
      const { nodes } = read(chain({ ...empty, role: node["role"], content: node["content"] }));
      const kept = Object.keys(nodes?.[0]?.meta ?? {});
      expect(kept.filter((name) => !optional.includes(name))).toEqual([]);
      expect(nodes?.[0]).toMatchObject({ role: node["role"], content: [{ type: "text" }] });
    }
  });
});

describe("faults without a repair", () => {
  test.each([
    [
      "missing_parent",
      tree([{ id: "n9", parentId: "n8", ...user }]),
      "n9",
      'Node "n9" has parent "n8", which is not in the document.',
      "n9",
    ],
    [
      "cycle",
      tree([
        { id: "a", parentId: "b", ...user },
        { id: "b", parentId: "a", ...answer },
      ]),
      "a",
      'Node "a" is its own ancestor.',
      "a",
    ],
    ["unknown_node", chain(user), "x", 'Node "x" is not in the document.', "x"],
    [
      "duplicate_node",
      tree([
        { id: "a", ...user },
        { id: "a", ...user },
      ]),
      "a",
      'Two nodes have the id "a".',
      "a",
    ],
    [
      "bad_image",
      chain({ ...user, content: [{ type: "image", data: "!", mimeType: "image/png" }] }),
      "n0",
      'Node "n0" has an image that is not base64 with a type such as image/png.',
      "n0",
    ],
    [
      "bad_image",
      chain({ ...user, content: [{ type: "image", data: png, mimeType: "text/html" }] }),
      "n0",
      undefined,
      "n0",
    ],
    ["bad_image", chain({ ...user, content: [{ type: "image" }] }), "n0", undefined, "n0"],
    [
      "bad_arguments",
      chain(user, call("a", { arguments: "ls" })),
      "n1",
      'Node "n1" has a call whose arguments are not an object.',
      "n1",
    ],
    ["bad_arguments", chain(user, call("a", { arguments: [] })), "n1", undefined, "n1"],
    [
      "bad_arguments",
      chain(user, { ...answer, toolCalls: [{ id: "a", name: "b", arguments: null }] }),
      "n1",
      undefined,
      "n1",
    ],
    [
      "unknown_role",
      list([user, call("a")]),
      undefined,
      'Item 2 has the role "toolCall", which is for nodes: an item has its calls in "toolCalls".',
      undefined,
    ],
    ["nothing_selected", list([]), undefined, "The selection is empty.", undefined],
    [
      "nothing_selected",
      tree([{ id: "a", ...user }]),
      undefined,
      'The document has no "leafId": name the node with "nodeId".',
      undefined,
    ],
  ])("%s", (code, document, leaf, message, nodeId) => {
    const { kind, status, data, message: words } = refusal(() => contextForStructured(document, leaf));
    expect({ kind, status, data }).toEqual({
      kind: "context_invalid",
      status: 422,
      data: { code, ...(nodeId === undefined ? {} : { nodeId }) },
    });
    if (message !== undefined) expect(words).toBe(message);
  });

  test("a missing parent off the path is ignored", () => {
    const nodes = [
      { id: "a", ...user },
      { id: "b", parentId: "gone", ...user },
    ];
    expect(contextForStructured(tree(nodes), "a", { until: "through" })).toHaveLength(1);
  });
});

test("a spelling that is null yields to another spelling", () => {
  const plain = read(chain(user, call("a", { arguments: { a: 1 } }), result("a")));
  const nodes = (plain.nodes ?? []).map(({ id, parentId, timestamp, ...node }) => ({
    id,
    parentId,
    timestamp,
    ...node,
  }));
  const spelled = chain(
    user,
    { role: "toolCall", toolCallId: "a", toolName: null, name: "bash", arguments: null, params: { a: 1 } },
    { role: "toolResult", toolCallId: "a", toolName: null, name: "bash", result: null, content: "ok" },
  );
  expect(read(spelled).nodes).toEqual(nodes);
  const calls = [{ id: null, toolCallId: "a", name: null, toolName: "bash", arguments: null, input: { a: 1 } }];
  expect(read(chain(user, { role: "assistant", toolCalls: calls })).nodes?.[1]?.toolCalls).toEqual([
    { id: "a", name: "bash", arguments: { a: 1 } },
  ]);
});

describe("limits", () => {
  const big = "x".repeat(101);
  const bytes = (count: number) => Buffer.alloc(count).toString("base64");
  const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });

  test.each([
    [
      "nodes",
      chain(user, answer, user),
      { maxNodes: 2 },
      "The document has 3 nodes; the limit is 2 (context.maxNodes).",
    ],
    [
      "items of a list",
      list([user, answer, user]),
      { maxNodes: 2 },
      "The document has 3 items; the limit is 2 (context.maxNodes).",
    ],
    [
      "bytes",
      chain({ ...user, meta: { big } }),
      { maxDocumentBytes: 100 },
      /^The document has \d+ bytes; the limit is 100 \(context\.maxDocumentBytes\)\.$/,
    ],
    [
      "a text",
      chain({ ...user, content: big }),
      { maxBlockBytes: 100 },
      'A text of node "n0" has 101 bytes; the limit is 100 (context.maxBlockBytes).',
    ],
    [
      "a text in UTF-8",
      chain({ ...user, content: "é".repeat(51) }),
      { maxBlockBytes: 100 },
      'A text of node "n0" has 102 bytes; the limit is 100 (context.maxBlockBytes).',
    ],
    [
      "an image",
      chain({ ...user, content: [{ type: "image", data: bytes(100), mimeType: "image/png" }] }),
      { maxImageBytes: 99 },
      'An image of node "n0" has 100 bytes; the limit is 99 (context.maxBlockBytes).',
    ],
    [
      "calls",
      chain(user, calling(["a", "b", "c"])),
      { maxToolCalls: 2 },
      'Node "n1" has 3 tool calls; the limit is 2.',
    ],
    [
      "levels of arguments",
      chain(user, call("a", { arguments: nested(65) })),
      {},
      'A call of node "n1" has 65 levels of arguments, or more; the limit is 64.',
    ],
  ])("%s", (_, document, limits, message) => {
    const refused = refusal(() => read(document, limits));
    expect(refused).toMatchObject({ kind: "context_too_large", status: 413 });
    expect(refused.message).toEqual(typeof message === "string" ? message : expect.stringMatching(message));
  });

  const model = { api: "a", provider: "p", id: "m" };
  test.each<[string, Raw]>([
    ["arguments", call("a", { arguments: { content: ["", big] } })],
    ["a call's arguments", { role: "assistant", toolCalls: [{ id: "a", name: "x", arguments: { big } }] }],
    ["details", result("a", "", { details: { big } })],
    ["a signature", { ...answer, content: [{ type: "reasoning", text: "", signature: big }] }],
    ["blocks", { ...answer, model, blocks: [{ type: "thinking", thinking: "", thinkingSignature: big }] }],
    ["meta", { ...answer, other: { big } }],
    ["an image that is too large", { ...answer, other: { type: "image", data: "x".repeat(400) } }],
  ])("a text is bounded in %s too", (_, node) => {
    const limits = { maxBlockBytes: 100, maxImageBytes: 200 };
    expect(refusal(() => read(chain(user, node), limits)).message).toMatch(
      /^A text of node "n1" has (101|400) bytes; the limit is 100 \(context\.maxBlockBytes\)\.$/,
    );
    expect(read(chain(user, node)).nodes).toHaveLength(2);
  });

  test("values just within each limit are accepted", () => {
    const image = { type: "image", data: bytes(99), mimeType: "image/png" };
    const content = [{ type: "text", text: "x".repeat(100) }, image];
    const document = chain({ ...user, content }, calling(["a", "b"]), call("c", { arguments: nested(64) }));
    const limits = { maxNodes: 3, maxBlockBytes: 100, maxImageBytes: 99, maxToolCalls: 2 };
    expect(read(document, limits).nodes).toHaveLength(3);
  });

  test("numbers have spaces between their thousands", () => {
    const nodes = Array.from({ length: 61_204 }, (_, index) => ({ id: `n${index}`, ...user }));
    const { message } = refusal(() => read(tree(nodes)));
    expect(message).toBe("The document has 61 204 nodes; the limit is 50 000 (context.maxNodes).");
  });

  test("items are counted after selection, and parallel calls after they are merged into one message", () => {
    const limits = { ...defaultContextLimits, maxItems: 2, maxToolCalls: 2 };
    const select = (document: Raw) => contextForStructured(document, undefined, { until: "through", limits });
    expect(refusal(() => select(chain(user, answer, user)))).toMatchObject({
      kind: "context_too_large",
      message: "The context has 3 items; the limit is 2 (context.maxItems).",
    });
    expect(select(chain(user, answer))).toHaveLength(2);
    // Unanswered calls get results, which count too, before they are created.
    const unanswered = chain(user, ...Array.from({ length: 4 }, () => calling(["", ""])));
    const all = { ...defaultContextLimits, maxItems: 12 };
    const built = (maxItems: number) => prepareContext(unanswered, { maxTokens: null }, target, { ...all, maxItems });
    expect(refusal(() => built(12))).toMatchObject({
      kind: "context_too_large",
      message: "The context has 13 items or more; the limit is 12 (context.maxItems).",
    });
    expect(built(13).messages).toHaveLength(13);
    expect(refusal(() => select(chain(user, call("a"), call("b"), call("c")))).message).toBe(
      'Node "n1" has 3 tool calls; the limit is 2.',
    );
  });
});
