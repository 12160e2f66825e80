import { expect, test } from "vitest";
import { closedRange, untagged, visibleIn } from "../../../bench/lib/pruning/compressor.ts";
import {
  commonMessages,
  messagesOf,
  PrefixWatch,
  withoutCompressing,
  withoutReminder,
} from "../../../bench/lib/pruning/payload.ts";
import type { LogEntry } from "../../../provider/log.ts";
import type { RequestMessage } from "../../../provider/messages.ts";

const message = (role: RequestMessage["role"], ...texts: string[]): RequestMessage => ({
  ...{ role, texts, thinking: [], toolCalls: [], toolResults: [], imageCount: 0 },
});
const tag = (id: string): string => `<dcp-message-id>${id}</dcp-message-id>`;

test("a model sees the ids of a request, what they name, and how many answers have followed", () => {
  const messages = [
    message("system", `Tags such as ${tag("m999")} are metadata.`),
    message("user", "A block.", tag("b1")),
    message("assistant", "Well."),
    { ...message("user", tag("m012")), toolResults: [{ callId: "c", text: `out\n${tag("m011")}`, isError: false }] },
    message("assistant", "So."),
  ];
  const visible = visibleIn({ messages });
  expect(visible.map(({ id, answersBehind }) => [id, answersBehind])).toEqual([
    ["b1", 2],
    ["m011", 1],
    ["m012", 1],
  ]);
  expect(untagged(`out\n${tag("m011")}`)).toBe("out");
  const wish = { spare: 0, summary: "S." };
  expect(closedRange(visible, { ...wish, takesBlocks: false })).toEqual({
    startId: "m011",
    endId: "m012",
    summary: "S.",
  });
  expect(closedRange(visible, { ...wish, takesBlocks: true })).toEqual({
    ...{ startId: "b1", endId: "m012", summary: "(b1)\n\nS." },
  });
  expect(closedRange(visible, { ...wish, spare: 1, takesBlocks: true })).toBeUndefined();
});

test("payloads are compared without values that change by themselves", () => {
  const marked = { type: "text", text: "a", cache_control: { type: "ephemeral" } };
  const request = (...messages: object[]): LogEntry => ({ body: { messages } }) as unknown as LogEntry;
  const call = { role: "assistant", content: [{ type: "tool_use", id: "c", name: "compress", input: {} }] };
  const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "Done." }] };
  const reminder = { role: "user", content: "<dcp-system-reminder>Now.</dcp-system-reminder>" };
  const before = request({ role: "user", content: [marked] }, reminder);
  const after = request({ role: "user", content: "a" }, call, result, { role: "user", content: "b" });
  expect(commonMessages(withoutReminder(messagesOf(before)), messagesOf(after))).toBe(1);
  expect(withoutReminder(messagesOf(before))).toHaveLength(1);
  expect(withoutCompressing(messagesOf(after)).map(({ content }) => content[0]?.["text"])).toEqual(["a", "b"]);
  const watch = new PrefixWatch();
  for (const one of [before, after, before]) watch.take(one, false);
  expect(watch.counts).toEqual({ requests: 2, same: 1 });
});
