import { expect, test } from "vitest";
import { withTag } from "../../../../context/pruning/tags.ts";
import { tagOf } from "../../../../extension/message-tag.ts";
import type { AgentMessage } from "../../../../extension/pi-types.ts";

const message = (fields: object): AgentMessage => ({ timestamp: 1, ...fields }) as unknown as AgentMessage;
const text = (words: string) => ({ type: "text", text: words });
const tag = text(tagOf("m007"));
const contentOf = (made: AgentMessage): unknown => (made as { readonly content: unknown }).content;

test.each([
  ["user", "words", [text("words"), tag]],
  ["user", [text("words"), { type: "image" }], [text("words"), { type: "image" }, tag]],
  ["custom", "push", [text("push"), tag]],
  ["toolResult", [], [tag]],
])("a %s message has its tag as the last block", (role, content, expected) => {
  expect(contentOf(withTag(message({ role, content }), "m007"))).toEqual(expected);
});

test("the tag of an answer is after the text and before the first call, in its own block", () => {
  const thinking = { type: "thinking", thinking: "t", thinkingSignature: "s" };
  const call = { type: "toolCall", id: "c", name: "n", arguments: {} };
  const signed = { ...text("said"), textSignature: "s" };
  const made = (...content: readonly object[]) => contentOf(withTag(message({ role: "assistant", content }), "m007"));
  expect(made(thinking, signed, call)).toEqual([thinking, signed, tag, call]);
  expect(made(thinking, call, call)).toEqual([thinking, tag, call, call]);
  expect(made(signed, thinking, call)).toEqual([signed, tag, thinking, call]);
  expect(made(thinking, signed)).toEqual([thinking, signed, tag]);
});

test("existing tags are removed first: applying twice equals once", () => {
  for (const role of ["user", "custom", "toolResult", "assistant"]) {
    const once = withTag(message({ role, content: [text("words")] }), "m007");
    expect(withTag(once, "m007")).toEqual(once);
    expect(contentOf(withTag(withTag(once, "m008"), "m007"))).toEqual(contentOf(once));
  }
});

test("stages never mutate: the message is unchanged", () => {
  const given = Object.freeze(message({ role: "user", content: Object.freeze([Object.freeze(text("words"))]) }));
  expect(withTag(given, "m007")).not.toBe(given);
});
