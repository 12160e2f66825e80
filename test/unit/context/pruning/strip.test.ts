import { expect, test } from "vitest";
import type { GivenMessageIds } from "../../../../context/pruning/ids.ts";
import { addStrip, stripped, strippedArguments } from "../../../../context/pruning/strip.ts";
import { tagOf, withoutLastTag, withoutTags } from "../../../../extension/message-tag.ts";
import type { AgentMessage } from "../../../../extension/pi-types.ts";
import { partial } from "../../../helpers/partial.ts";
import { fakeContext, fakeHost } from "../fake-host.ts";

type Assistant = Extract<AgentMessage, { role: "assistant" }>;
const isIssued = (id: string): boolean => ["m001", "m012", "b3"].includes(id);
const said = (...content: readonly object[]): Assistant =>
  ({ role: "assistant", content, stopReason: "stop", timestamp: 1 }) as unknown as Assistant;
const text = (words: string) => ({ type: "text", text: words });
const toolCall = (name: string, args: object, more = {}) => ({
  type: "toolCall",
  id: "c1",
  name,
  arguments: args,
  ...more,
});

test.each([
  ["a", "a"],
  [`a${tagOf("m001")}`, "a"],
  [`a\n${tagOf("m001")}`, "a\n"],
  [`a\n${tagOf("m001")}\nb\n`, "a\nb\n"],
  [`${tagOf("m012")}\r\nb`, "b"],
  [`${tagOf("m012")}\n${tagOf("b3")}\nb`, "b"],
  [`a ${tagOf("m012")} b`, "a  b"],
  [`a ${tagOf("m777")} b`, `a ${tagOf("m777")} b`],
  ["see m012, <dcp-message-id>m012", "see m012, <dcp-message-id>m012"],
  ["<dcp-message-id> m012 </dcp-message-id>", "<dcp-message-id> m012 </dcp-message-id>"],
  [`<dcp-message-id>${tagOf("m001")}`, "<dcp-message-id>"],
])("only exact tags of ids that were given are removed: %j", (given, expected) => {
  expect(withoutTags(given, isIssued)).toBe(expected);
});

test("a tag at the end is distinguished from a similar text", () => {
  expect(withoutLastTag(`push\n${tagOf("m001")}`)).toBe("push\n");
  expect(withoutLastTag(tagOf("m001"))).toBe("");
  expect(withoutLastTag("push</dcp-message-id>")).toBe("push</dcp-message-id>");
  expect(withoutLastTag(`${tagOf("m001")} push`)).toBe(`${tagOf("m001")} push`);
});

test("a text of megabytes with many beginnings of tags is scanned once, and stays", () => {
  const hostile = `${"<dcp-message-id>m1".repeat(200_000)}${"\n".repeat(200_000)}</dcp-message-id>`;
  expect(withoutTags(hostile, isIssued)).toBe(hostile);
  expect(withoutLastTag(hostile)).toBe(hostile);
});

test("a file that the model writes contains no tag, and neither does its text; its thinking is left alone", () => {
  const thinking = { type: "thinking", thinking: `about ${tagOf("m001")}`, thinkingSignature: "s" };
  const { made, removed } = stripped(
    said(
      thinking,
      text(`done ${tagOf("m012")}`),
      text(tagOf("m001")),
      toolCall("write", { path: "a", content: `x\n${tagOf("m001")}` }),
    ),
    isIssued,
  );
  expect(removed).toBe(3);
  expect(made.content).toEqual([thinking, text("done "), toolCall("write", { path: "a", content: "x\n" })]);
});

test("an answer that was only a tag keeps an empty text, and one without tags is the same object", () => {
  expect(stripped(said(text(tagOf("m001"))), isIssued).made.content).toEqual([text("")]);
  const plain = said(text("see m012"), toolCall("bash", { command: "ls" }));
  expect(stripped(plain, isIssued)).toEqual({ made: plain, removed: 0 });
  expect(stripped(plain, isIssued).made).toBe(plain);
});

test("thinking is never left at the end of an answer that had a tag after it", () => {
  const thinking = { type: "thinking", thinking: "t", thinkingSignature: "s" };
  const tag = { ...text(tagOf("m012")), textSignature: "x" };
  const contentOf = (...content: readonly object[]) => stripped(said(...content), isIssued).made.content;
  expect(contentOf(thinking, tag)).toEqual([thinking, { ...tag, text: "…" }]);
  expect(contentOf(text("a"), thinking, text(tagOf("m001")), tag)).toEqual([
    text("a"),
    thinking,
    { ...tag, text: "…" },
  ]);
  expect(contentOf(thinking, tag, text("b"))).toEqual([thinking, text("b")]);
  expect(contentOf(thinking, tag, toolCall("bash", {}))).toEqual([thinking, toolCall("bash", {})]);
  expect(contentOf(tag, thinking)).toEqual([thinking]);
});

test("search patterns, and ids that the tools expect, stay unchanged", () => {
  const tag = tagOf("m012");
  const edit = { edits: [{ oldText: `a${tag}`, newText: `b${tag}` }], oldText: tag, path: "a" };
  expect(strippedArguments("edit", edit, isIssued).made).toEqual({
    edits: [{ oldText: `a${tag}`, newText: "b" }],
    oldText: tag,
    path: "a",
  });
  const ranges = [{ startId: tag, endId: "m012", summary: `s ${tagOf("b3")}` }];
  expect(strippedArguments("compress", { topic: `t${tag}`, ranges }, isIssued).made).toEqual({
    topic: "t",
    ranges: [{ startId: tag, endId: "m012", summary: "s " }],
  });
  const asText = { topic: "t", ranges: JSON.stringify(ranges) };
  expect(strippedArguments("compress", asText, isIssued).made).toBe(asText);
  expect(strippedArguments("recall", { id: tagOf("b3") }, isIssued).made).toEqual({ id: tagOf("b3") });
});

test("a signed call is stored unchanged, and executed without the tags", () => {
  const signed = toolCall("write", { content: tagOf("m001") }, { thoughtSignature: "s" });
  const ctx = fakeContext();
  const host = fakeHost(ctx);
  let count = 0;
  const ids = partial<GivenMessageIds>({
    entryOf: (id: string) => (id === "m001" ? "e1" : undefined),
    removed: (tags: number) => {
      count += tags;
    },
  });
  addStrip({ ...host, off: () => undefined, ids, blocks: partial({ nextId: () => "b3" }) });
  const message = said(signed, text(`${tagOf("b2")}a${tagOf("b3")}`));
  const kept = { ...message, content: [signed, text(`a${tagOf("b3")}`)] };
  expect(host.pipeline.run("message_end", message, ctx)).toEqual(kept);
  expect(count).toBe(1);
  const input = { content: `x${tagOf("m001")}`, oldText: "y" };
  host.emit("tool_call", { toolCallId: "c1", toolName: "write", input });
  expect(input).toEqual({ content: "x", oldText: "y" });
  expect(host.faults).toEqual([]);
});

test("signed calls that were never executed do not keep tags in those of later runs", () => {
  const ctx = fakeContext();
  const host = fakeHost(ctx);
  const ids = partial<GivenMessageIds>({
    entryOf: (id: string) => (id === "m001" ? "e1" : undefined),
    removed: () => undefined,
  });
  addStrip({ ...host, off: () => undefined, ids, blocks: partial({ nextId: () => "b1" }) });
  const signed = (id: string) => toolCall("write", { content: tagOf("m001") }, { id, thoughtSignature: "s" });
  const aborted = Array.from({ length: 1_000 }, (_, at) => signed(`aborted${at}`));
  host.pipeline.run("message_end", said(...aborted), ctx);
  host.emit("agent_settled", {});
  host.pipeline.run("message_end", said(signed("made")), ctx);
  const input = { content: `x${tagOf("m001")}` };
  host.emit("tool_call", { toolCallId: "made", toolName: "write", input });
  expect(input).toEqual({ content: "x" });
});

test("arguments with names of built-in properties are ordinary arguments", () => {
  const given = JSON.parse(`{"__proto__": {"content": ${JSON.stringify(tagOf("m001"))}}}`) as Record<string, unknown>;
  const { made } = strippedArguments("constructor", given, isIssued);
  expect(JSON.stringify(made)).toBe('{"__proto__":{"content":""}}');
});
