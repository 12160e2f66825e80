import { expect, test } from "vitest";
import { exportContext } from "../../../context/document/export.ts";
import { normalise } from "../../../context/document/normalise.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { unchecked } from "../../helpers/partial.ts";
import { list, result, user } from "./documents.ts";

const target = { api: "openai-responses", provider: "openai", id: "gpt", takesImages: true };
const signature = JSON.stringify({ type: "reasoning", id: "rs_1", summary: [] });
const thinking = { type: "thinking", thinking: "Hm", thinkingSignature: signature };
const blocks = [
  { type: "text", text: "So", textSignature: "msg_1" },
  { type: "toolCall", id: "call_1|fc_1", name: "bash", arguments: {} },
];
const step = (...all: readonly object[]) => ({ role: "assistant", model: target, blocks: all });
const document = list(
  [
    user,
    step(thinking, ...blocks),
    result("call_1|fc_1"),
    step({ ...blocks[1], id: "call_2|fc_2" }),
    result("call_2|fc_2"),
  ].map((item, timestamp) => ({ timestamp, ...item })),
);

function exported(includeReasoning: boolean) {
  const prepared = prepareContext(document, { maxTokens: null }, target, defaultContextLimits);
  const entries = [...sessionEntries(prepared, { id: "s", timestamp: 1, cwd: "/" })];
  return exportContext(JSON.parse(JSON.stringify(entries)) as unknown[], { includeReasoning }).document.items ?? [];
}

test("an export without reasoning omits only the ids that belong to reasoning", () => {
  const items = exported(false);
  expect(items[1]).toMatchObject({
    content: [{ type: "text", text: "So" }],
    toolCalls: [{ id: "call_1", name: "bash", arguments: {} }],
  });
  expect(JSON.stringify(items[1])).not.toMatch(/rs_1|msg_1|fc_1/);
  expect(items.map(({ toolCallId }) => toolCallId)).toEqual([undefined, undefined, "call_1", undefined, "call_2|fc_2"]);
  expect(items).toEqual(normalise(document, target, { until: "through" }).items);
  const again = prepareContext(list(unchecked(items)), { maxTokens: null }, target, defaultContextLimits);
  expect(again.counts.repairs).toEqual({});
});

test("with its reasoning it keeps them", () => {
  const items = exported(true);
  expect(items[1]?.blocks).toEqual([thinking, ...blocks]);
  expect(items).toEqual(normalise(document, target, { until: "through", includeReasoning: true }).items);
});
