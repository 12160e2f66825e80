import { describe, expect, test } from "vitest";
import type { ContextItem, RepairCode } from "../../../context/document/document.ts";
import { unchecked } from "../../helpers/partial.ts";
import {
  answer,
  call,
  calling,
  chain,
  list,
  mend,
  other,
  outline,
  own,
  png,
  type Raw,
  refusal,
  result,
  target,
  user,
} from "./documents.ts";

function items(...raw: readonly Raw[]): Raw {
  return list(raw.map((item, timestamp) => ({ timestamp, ...item })));
}

const noResult = "No result was recorded; the call was interrupted.";
const openingWords = "(The conversation starts here.)";

/** The findings of each rule, and its repairs. */
const rules: readonly [RepairCode, Raw, readonly string[]][] = [
  ["orphan_result", items(user, result("x"), answer), ["user:Hello", "assistant:Hi"]],
  ["orphan_result", items(user, { role: "toolResult", content: "4" }, answer), ["user:Hello", "assistant:Hi"]],
  [
    "missing_result",
    items(user, calling(["a", "b"]), result("a"), user),
    ["user:Hello", "assistant(a,b)", "toolResult(a)", "toolResult(b)", "user:Hello"],
  ],
  [
    "duplicate_result",
    items(user, calling(["a"]), result("a", "part"), result("a", "whole"), user),
    ["user:Hello", "assistant(a)", "toolResult(a)", "user:Hello"],
  ],
  [
    "duplicate_call_id",
    items(user, calling(["a"]), result("a"), calling(["a"]), result("a"), calling(["a"]), result("a")),
    [
      "user:Hello",
      "assistant(a)",
      "toolResult(a)",
      "assistant(a-2)",
      "toolResult(a-2)",
      "assistant(a-3)",
      "toolResult(a-3)",
    ],
  ],
  [
    "late_result",
    items(user, calling(["a"]), user, result("a"), answer),
    ["user:Hello", "assistant(a)", "toolResult(a)", "user:Hello", "assistant:Hi"],
  ],
  [
    "late_result",
    items(user, result("a"), calling(["a"]), user),
    ["user:Hello", "assistant(a)", "toolResult(a)", "user:Hello"],
  ],
  ["wrong_content", items({ role: "user", content: ["Hello"] }, answer), ["user:Hello", "assistant:Hi"]],
  [
    "wrong_content",
    items(user, calling(["a"], { content: null }), result("a")),
    ["user:Hello", "assistant(a)", "toolResult(a)"],
  ],
  ["empty_message", items(user, { role: "assistant", content: "" }, user), ["user:Hello", "user:Hello"]],
  ["empty_message", items({ role: "user", content: " \n" }, user, answer), ["user:Hello", "assistant:Hi"]],
  ["leading_assistant", items(answer, user), [`user:${openingWords}`, "assistant:Hi", "user:Hello"]],
  [
    "interrupted_assistant",
    items(user, calling(["a"], { stopReason: "aborted" }), result("a"), user),
    ["user:Hello", "assistant(a)", "toolResult(a)", "user:Hello"],
  ],
  [
    "foreign_reasoning",
    items(user, {
      role: "assistant",
      model: other,
      content: [
        { type: "reasoning", text: "Hm" },
        { type: "text", text: "Hi" },
      ],
    }),
    ["user:Hello", "assistant:Hi"],
  ],
  ["bad_timestamp", items({ ...user, timestamp: "now" }, answer), ["user:Hello", "assistant:Hi"]],
  ["bad_timestamp", items({ ...user, timestamp: 1e308 }, answer), ["user:Hello", "assistant:Hi"]],
  ["orphan_tool_node", chain(user, call("a"), result("a")), ["user:Hello", "assistant(a)", "toolResult(a)"]],
  [
    "bad_call_id",
    items(user, calling(["a|b c"]), result("a|b c"), user),
    ["user:Hello", "assistant(a_b_c_c352b1f3)", "toolResult(a_b_c_c352b1f3)", "user:Hello"],
  ],
  [
    "bad_tool_name",
    items(user, { role: "assistant", toolCalls: [{ id: "a", name: "x.y" }] }, result("a")),
    ["user:Hello", "assistant(a)", "toolResult(a)"],
  ],
];

describe.each(rules)("%s", (code, document, golden) => {
  test("is repaired, counted each time, and names its node", () => {
    const { items: mended, codes, repairs } = mend(document);
    expect(new Set(codes)).toEqual(new Set([code]));
    expect(outline(mended)).toEqual(golden);
    for (const { detail } of repairs) expect(detail).toMatch(/^(Node "|Item |Call ").+\.$/);
    expect(mend(items(...unchecked<Raw[]>(mended))).codes).toEqual([]);
  });

  test("is an error if repairs are disabled", () => {
    expect(refusal(() => mend(document, { repair: false }))).toMatchObject({
      kind: "context_invalid",
      status: 422,
      data: { code },
      message: expect.stringMatching(/\.$/),
    });
  });
});

test("every rule of the table has its case, except those that adapt a valid context to its model", async () => {
  const { repairCodes } = await import("../../../context/document/document.ts");
  const adaptations = ["lone_surrogate", "image_left_out"];
  expect(repairCodes.filter((code) => !rules.some(([one]) => one === code))).toEqual(adaptations);
});

test("a tool's name is repaired in its call and its result, and the former name stays with the call", () => {
  const { items: mended } = mend(
    items(user, { role: "assistant", toolCalls: [{ id: "a", name: "x.y" }] }, result("a")),
  );
  const [, asked, answered] = mended;
  expect(asked?.toolCalls).toEqual([{ id: "a", name: "x_y", arguments: {} }]);
  expect(asked?.meta).toEqual({ originalCalls: [{ id: "a", originalName: "x.y" }] });
  expect(answered).toMatchObject({ toolCallId: "a", toolName: "x_y" });
});

test("the invalid node is named", () => {
  const document = chain(user, calling(["a"]), user);
  expect(mend(document).repairs).toEqual([{ code: "missing_result", nodeId: "n1", detail: 'Call "a" has no result.' }]);
  expect(refusal(() => mend(document, { repair: false })).data).toEqual({ code: "missing_result", nodeId: "n1" });
});

test("a call without a result gets one that says so, as an error of its tool", () => {
  const { items: mended } = mend(items(user, calling(["a"])));
  expect(mended[2]).toEqual({
    role: "toolResult",
    toolCallId: "a",
    toolName: "bash",
    content: [{ type: "text", text: noResult }],
    isError: true,
    timestamp: 1,
  });
});

test("the later of two results is kept, and results stay in their order", () => {
  const twice = mend(items(user, calling(["a"]), result("a", "part"), result("a", "whole"))).items;
  expect(twice[2]?.content).toEqual([{ type: "text", text: "whole" }]);
  const { items: mended, codes } = mend(items(user, calling(["a", "b"]), result("b"), result("a")));
  expect(outline(mended)).toEqual(["user:Hello", "assistant(a,b)", "toolResult(b)", "toolResult(a)"]);
  expect(codes).toEqual([]);
});

test("parallel calls with the same id get the results in turn", () => {
  const document = items(user, calling(["a", "a"]), result("a", "first"), result("a", "second"));
  const { items: mended } = mend(document);
  expect(outline(mended)).toEqual(["user:Hello", "assistant(a,a-2)", "toolResult(a)", "toolResult(a-2)"]);
  expect(mended[3]?.content).toEqual([{ type: "text", text: "second" }]);
});

test("results without ids are assigned to calls of their tools, in the nearest message that has an open one", () => {
  const calls = (...names: readonly string[]) => ({ role: "assistant", toolCalls: names.map((name) => ({ name })) });
  const of = (toolName: string, content: string) => ({ role: "toolResult", toolName, content });
  const said = (...raw: readonly Raw[]): readonly (readonly string[])[] => {
    const { items: mended, codes } = mend(items(user, ...raw));
    expect(codes.filter((code) => code !== "bad_call_id" && code !== "duplicate_call_id")).toEqual([]);
    const made = mended.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id, name }) => [id, name] as const));
    return made.map(([id, name]) => {
      const found = mended.find(({ toolCallId }) => toolCallId === id);
      expect(found?.toolName).toBe(name);
      return [name, JSON.stringify(found?.content)];
    });
  };
  const expected = [
    ["read", expect.stringContaining("READ")],
    ["bash", expect.stringContaining("BASH")],
  ];
  expect(said(calls("read", "bash"), of("bash", "BASH"), of("read", "READ"))).toEqual(expected);
  expect(said(calls("read", "bash"), of("read", "READ"), of("bash", "BASH"))).toEqual(expected);
  const empty = (result: Raw): Raw => ({ ...result, toolCallId: "" });
  expect(said(calls("read", "bash"), empty(of("bash", "BASH")), empty(of("read", "READ")))).toEqual(expected);
  const { items: mended } = mend(items(user, calls("read"), calls("bash"), of("read", "READ"), of("bash", "BASH")));
  expect(
    outline(mended)
      .slice(1)
      .map((line) => line.split("(")[0]),
  ).toEqual(["assistant", "toolResult", "assistant", "toolResult"]);
  expect([mended[2]?.content, mended[4]?.content]).toEqual([
    [{ type: "text", text: "READ" }],
    [{ type: "text", text: "BASH" }],
  ]);
  expect(said(calls("read", "read"), of("read", "1"), of("read", "2"))).toEqual([
    ["read", expect.stringContaining("1")],
    ["read", expect.stringContaining("2")],
  ]);
});

test("of results before their calls the last is kept, one for each call, and the others are duplicates", () => {
  const both = mend(items(user, result("a", "early"), calling(["a"]), result("a", "late")));
  expect(both.codes).toEqual(["duplicate_result"]);
  expect(both.items[2]?.content).toEqual([{ type: "text", text: "late" }]);
  const two = mend(items(user, result("a", "first"), result("a", "second"), calling(["a", "a"])));
  expect(two.codes).toEqual(["duplicate_call_id", "late_result", "late_result"]);
  expect(two.items.slice(2).map(({ content }) => content)).toEqual([
    [{ type: "text", text: "first" }],
    [{ type: "text", text: "second" }],
  ]);
  const many = mend(items(user, result("a", "first"), result("a", "second"), calling(["a"])));
  expect(many.codes).toEqual(["duplicate_result", "late_result"]);
  expect(many.items[2]?.content).toEqual([{ type: "text", text: "second" }]);
});

test("a suffix never produces an existing id", () => {
  const { items: mended } = mend(items(user, calling(["a", "a-2", "a"]), result("a"), result("a-2"), result("a")));
  expect(outline(mended).slice(1)).toEqual([
    "assistant(a,a-2,a-3)",
    "toolResult(a)",
    "toolResult(a-2)",
    "toolResult(a-3)",
  ]);
});

test.each(["a|b", "with space", "x".repeat(450), "", "é", "\ud800", "a".repeat(65)])(
  "the id %j becomes one that every service accepts",
  (id) => {
    const { items: mended } = mend(items(user, calling([id]), result(id)));
    const made = mended[1]?.toolCalls?.[0]?.id ?? "";
    expect(made).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(made).toMatch(/_[0-9a-f]{8}$/);
    expect(mended[2]?.toolCallId).toBe(made);
    expect(mended[1]?.meta).toEqual({ originalCalls: [{ id: made, originalId: id }] });
    expect(mended[2]?.meta).toEqual({ originalCallId: id });
  },
);

test("ids stay different in the first 40 characters, which is the number that pi gives to OpenAI's chat completions", () => {
  const y = "y".repeat(41);
  const ids = [`${"x".repeat(449)}1`, `${"x".repeat(449)}2`, `${y}1`, `${y}2`, y, y, "z".repeat(40), "z".repeat(40)];
  const { items: mended } = mend(items(user, calling(ids), ...ids.map((id, nth) => result(id, `result ${nth}`))));
  const made = mended[1]?.toolCalls?.map(({ id }) => id) ?? [];
  expect(made.filter((id) => id.length > 40)).toEqual([]);
  expect(new Set(made).size).toBe(ids.length);
  expect(mended.slice(2).map(({ toolCallId }) => toolCallId)).toEqual(made);
  const openai = { ...target, api: "openai-completions", provider: "openai" };
  const claimed = items(user, calling(ids, { model: openai }), ...ids.map((id) => result(id)));
  const own = mend(claimed, { target: openai }).items[1]?.toolCalls?.map(({ id }) => id.slice(0, 40));
  expect(new Set(own).size).toBe(ids.length);
});

test("ids that differ only in the ending that pi removes for OpenAI Responses stay different", () => {
  const ids = ["c_", "c", "_", "c__"];
  const responses = { ...target, api: "openai-responses" };
  const document = items(user, calling(ids), ...ids.map((id) => result(id)));
  const made = mend(document, { target: responses }).items[1]?.toolCalls?.map(({ id }) => id) ?? [];
  expect(made.filter((id) => id.endsWith("_"))).toEqual([]);
  expect(new Set(made).size).toBe(ids.length);
  // Other services get them unchanged.
  expect(mend(document).codes).toEqual([]);
});

test("ids that differ only in replaced characters stay different", () => {
  const { items: mended } = mend(items(user, calling(["a|b", "a b"]), result("a|b", "1"), result("a b", "2")));
  const [first, second] = mended[1]?.toolCalls ?? [];
  expect(first?.id).not.toBe(second?.id);
  expect(mended.slice(2).map((item) => item.toolCallId)).toEqual([first?.id, second?.id]);
});

test("a tool's name that some services refuse is replaced in its result too, and kept in meta", () => {
  const { items: mended } = mend(
    items(user, { role: "assistant", toolCalls: [{ id: "a", name: "mcp.x/y" }] }, result("a")),
  );
  expect(mended[1]?.toolCalls?.[0]?.name).toBe("mcp_x_y");
  expect(mended[1]?.meta).toEqual({ originalCalls: [{ id: "a", originalName: "mcp.x/y" }] });
  expect(mended[2]?.toolName).toBe("mcp_x_y");
});

test("the target's own messages keep ids, names, reasoning and blocks", () => {
  const responses = { ...target, api: "openai-responses" };
  const model = { ...own, api: responses.api };
  const signature = JSON.stringify({ type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm" }] });
  const blocks = [
    { type: "thinking", thinking: "Hm", thinkingSignature: signature },
    { type: "text", text: "So", textSignature: '{"v":1,"id":"msg_1","phase":"commentary"}' },
    { type: "toolCall", id: "call_1|fc_1", name: "a_b", arguments: { x: 1 }, thoughtSignature: "u" },
  ];
  const document = items(user, { role: "assistant", content: "other", model, blocks }, result("call_1|fc_1"));
  const { items: mended, codes } = mend(document, { target: responses });
  expect(codes).toEqual([]);
  expect(mended[1]).toMatchObject({
    blocks,
    content: [
      { type: "reasoning", text: "Hm", signature },
      { type: "text", text: "So" },
    ],
    toolCalls: [{ id: "call_1|fc_1", name: "a_b", arguments: { x: 1 } }],
  });
  expect(mended[2]).toMatchObject({ toolCallId: "call_1|fc_1", toolName: "a_b" });
});

test("content that claims to be of the target's model, but that its service cannot have produced, is repaired", () => {
  const responses = { ...target, api: "openai-responses" };
  const model = { ...own, api: responses.api };
  const blocks = [
    { type: "thinking", thinking: "Hm", thinkingSignature: "no item" },
    { type: "text", text: "So", textSignature: "no name of a message" },
    { type: "toolCall", id: "call 1", name: "a.b", arguments: {} },
  ];
  const document = items(user, { role: "assistant", content: "other", model, blocks }, result("call 1"));
  const { items: mended, codes } = mend(document, { target: responses });
  expect(codes).toEqual(["foreign_reasoning", "bad_call_id", "bad_tool_name"]);
  expect(mended[1]?.blocks).toEqual([
    { type: "thinking", thinking: "Hm" },
    { type: "text", text: "So" },
    { type: "toolCall", id: mended[2]?.toolCallId, name: "a_b", arguments: {} },
  ]);
  expect(mended[2]?.toolCallId).toMatch(/^call_1_[0-9a-f]{8}$/);
  expect(mend(items(...unchecked<Raw[]>(mended)), { target: responses }).codes).toEqual([]);
});

test("messages that claim to be of the target's model have each of its service's items once", () => {
  const responses = { ...target, api: "openai-responses" };
  const model = { ...own, api: responses.api };
  const signature = JSON.stringify({ type: "reasoning", id: "rs_1", summary: [] });
  const thinking = { type: "thinking", thinking: "Hm", thinkingSignature: signature };
  const said = { type: "text", text: "So", textSignature: "msg_1" };
  const calls = (id: string) => ({ type: "toolCall", id, name: "bash", arguments: {} });
  const first = { role: "assistant", model, blocks: [thinking, said, calls("call_1|fc_1")] };
  const copies = [
    { role: "assistant", model, blocks: [thinking, { type: "text", text: "again" }] },
    { role: "assistant", model, blocks: [{ ...said, text: "again" }] },
    { role: "assistant", model, blocks: [calls("call_2|fc_1")] },
    { role: "assistant", model, toolCalls: [{ id: "call_2|fc_1", name: "bash" }] },
    {
      ...{ role: "assistant", model },
      content: [
        { type: "reasoning", text: "Hm", signature },
        { type: "text", text: "again" },
      ],
    },
  ];
  for (const copy of copies) {
    const { items: mended } = mend(items(user, first, result("call_1|fc_1"), copy, result("call_2|fc_1"), user), {
      target: responses,
    });
    expect(mended[1]?.blocks).toEqual(first.blocks);
    const sent = mended.slice(3).map(({ meta: _, ...rest }) => rest);
    expect(JSON.stringify(sent)).not.toMatch(/rs_1|msg_1|\|fc_1"/);
    expect(outline(mended)[3]).toMatch(/^assistant(:again|\(call_2\))$/);
    expect(mend(items(...unchecked<Raw[]>(mended)), { target: responses }).codes).toEqual([]);
  }
  const twice = mend(items(user, { ...first, blocks: [thinking, thinking, said] }), { target: responses }).items;
  expect(twice[1]?.blocks).toBeUndefined();
  const named = mend(items(user, { ...first, blocks: [{ ...said, textSignature: "msg_pi_3" }] }), {
    target: responses,
  });
  expect(named.items[1]?.blocks).toEqual([{ type: "text", text: "So" }]);
});

test("for any other model blocks are ignored", () => {
  const blocks = [{ type: "toolCall", id: "x", name: "y", arguments: {} }];
  const { items: mended } = mend(items(user, { ...answer, model: other, blocks }));
  expect(mended[1]).toEqual({
    ...answer,
    content: [{ type: "text", text: "Hi" }],
    model: other,
    stopReason: "stop",
    timestamp: 1,
  });
});

test("blocks in another form than pi's are replaced by the format's own fields", () => {
  for (const block of [{ type: "image" }, { type: "text" }, { type: "toolCall", id: 1, name: "x", arguments: {} }]) {
    const { items: mended } = mend(items(user, { ...answer, model: own, blocks: [block] }));
    expect(mended[1]?.blocks).toBeUndefined();
    expect(mended[1]?.content).toEqual([{ type: "text", text: "Hi" }]);
  }
});

test("a duplicate id is changed in the target's own blocks too, in the part that must be unique", () => {
  const responses = { ...target, api: "openai-responses" };
  const step = {
    role: "assistant",
    model: { ...own, api: responses.api },
    blocks: [{ type: "toolCall", id: "call_1|fc_1", name: "a", arguments: {}, thoughtSignature: "u" }],
  };
  const document = items(user, step, result("call_1|fc_1"), step, result("call_1|fc_1"));
  const { items: mended } = mend(document, { target: responses });
  expect(mended[3]?.blocks).toEqual([
    { type: "toolCall", id: "call_1-2", name: "a", arguments: {}, thoughtSignature: "u" },
  ]);
  expect(mended[4]?.toolCallId).toBe("call_1-2");
});

test("an assistant with calls ends as toolUse, any other as stop", () => {
  const reasons = (stopReason: string) =>
    mend(items(user, calling(["a"], { stopReason }), result("a"), { ...answer, stopReason })).items.map(
      (item) => item.stopReason,
    );
  for (const reason of ["stop", "toolUse", "error", "aborted", "length", "end_turn"]) {
    expect(reasons(reason), reason).toEqual([undefined, "toolUse", undefined, "stop"]);
  }
});

test("lone surrogates become U+FFFD in texts and in arguments, without an error", () => {
  const document = items(
    { role: "user", content: "a\ud800b" },
    { role: "assistant", toolCalls: [{ id: "a", name: "x", arguments: { "k\udc00": ["\ud800"] } }] },
    result("a", "\udc00"),
  );
  const { items: mended, codes } = mend(document, { repair: false });
  expect(mended[0]?.content).toEqual([{ type: "text", text: "a\ufffdb" }]);
  expect(mended[1]?.toolCalls?.[0]?.arguments).toEqual({ "k\ufffd": ["\ufffd"] });
  expect(mended[2]?.content).toEqual([{ type: "text", text: "\ufffd" }]);
  expect(codes).toEqual(["lone_surrogate", "lone_surrogate", "lone_surrogate"]);
});

test("lone surrogates become U+FFFD in a model's own messages too, and in their blocks", () => {
  const blocks = [
    { type: "thinking", thinking: "a\ud800", thinkingSignature: "c2ln" },
    { type: "text", text: "b\udc00" },
    { type: "toolCall", id: "a", name: "bash", arguments: { "k\udc00": ["\ud800", "🙂"] } },
  ];
  const document = items(
    user,
    { role: "assistant", content: "\ud800", model: own },
    { role: "assistant", content: "", model: own, blocks },
    result("a"),
  );
  const { items: mended } = mend(document, { repair: false });
  expect(mended[1]?.content).toEqual([{ type: "text", text: "\ufffd" }]);
  const args = { "k\ufffd": ["\ufffd", "🙂"] };
  expect(mended[2]?.toolCalls?.[0]?.arguments).toEqual(args);
  expect(mended[2]?.blocks).toEqual([
    { ...blocks[0], thinking: "a\ufffd" },
    { type: "text", text: "b\ufffd" },
    { ...blocks[2], arguments: args },
  ]);
});

test("images stay for a model that accepts them, and become one text of type and size for any other", () => {
  const image = { type: "image", data: png, mimeType: "image/png" };
  const document = items({ role: "user", content: [image] }, calling(["a"]), { ...result("a"), content: [image] });
  const kept = mend(document);
  expect([kept.items[0]?.content, kept.items[2]?.content, kept.codes]).toEqual([[image], [image], []]);
  const left = mend(document, { target: { ...target, takesImages: false }, repair: false });
  const text = [{ type: "text", text: "[Image left out: image/png, 8 bytes]" }];
  expect([left.items[0]?.content, left.items[2]?.content, left.codes]).toEqual([
    text,
    text,
    ["image_left_out", "image_left_out"],
  ]);
});

test("images that no service accepts, and those of assistants, are omitted for every model", () => {
  const image = (mimeType: string) => [{ type: "image", data: png, mimeType }];
  const document = items(
    { role: "user", content: image("image/svg+xml") },
    { role: "assistant", content: image("image/png") },
  );
  const { items: mended } = mend(document);
  expect(outline(mended)).toEqual([
    "user:[Image left out: image/svg+xml, 8 bytes]",
    "assistant:[Image left out: image/png, 8 bytes]",
  ]);
});

test("a context without any remaining content is refused", () => {
  expect(refusal(() => mend(items({ role: "user", content: "" })))).toMatchObject({
    kind: "context_invalid",
    data: { code: "nothing_selected" },
  });
});

test("a missing time is one more than the previous one", () => {
  const times = (mended: readonly ContextItem[]) => mended.map(({ timestamp }) => timestamp);
  const { timestamp: _, ...timeless } = { timestamp: 0, ...user };
  expect(times(mend(list([timeless, { ...answer, timestamp: 40 }, timeless, timeless])).items)).toEqual([
    1, 40, 41, 42,
  ]);
  expect(times(mend(list([{ ...user, timestamp: 8.64e15 }, timeless])).items)).toEqual([8.64e15, 8.64e15]);
});

test("an event may begin a conversation, and system items stay where they are", () => {
  const event = { role: "event", eventType: "ci", content: "green" };
  expect(mend(items({ role: "system", content: "S" }, event, answer)).codes).toEqual([]);
  expect(outline(mend(items({ role: "system", content: "S" }, answer)).items)).toEqual([
    "system:S",
    `user:${openingWords}`,
    "assistant:Hi",
  ]);
});

test("argument names that become equal are kept apart", () => {
  const given = { "\ud800": 1, "\udc00": 2, "\ufffd": 3, "\ufffd-2": 4 };
  const { items: mended } = mend(
    items(user, { role: "assistant", toolCalls: [{ id: "a", name: "x", arguments: given }] }, result("a")),
  );
  const made = mended[1]?.toolCalls?.[0]?.arguments ?? {};
  expect(Object.values(made).toSorted()).toEqual([1, 2, 3, 4]);
  expect(made).toMatchObject({ "\ufffd": 3, "\ufffd-2": 4 });
});
