import { expect, test } from "vitest";
import { type Difference, firstDifference } from "../../../../../context/parts/cache/difference.ts";
import { type PayloadView, viewOf } from "../../../../../context/parts/cache/payload.ts";
import { anthropic, google, openai, payloads, responses } from "./payloads.ts";

function differenceOf(before: unknown, now: unknown): Difference | undefined {
  return firstDifference(viewOf(before) as PayloadView, viewOf(structuredClone(now)) as PayloadView);
}

function replaced(payload: object, text: string, by: string): unknown {
  return JSON.parse(JSON.stringify(payload).replace(text, by)) as unknown;
}

test.for(Object.keys(payloads) as (keyof typeof payloads)[])(
  "a request of %s is compared with the previous one by the first differing place",
  (api) => {
    const payload = payloads[api]();
    expect(differenceOf(payload, payload)).toBeUndefined();
    expect(differenceOf(payload, replaced(payload, "You are an expert.", "You are."))).toEqual({ place: "system" });
    expect(differenceOf(payload, replaced(payload, "Read it.", "Rewritten."))).toEqual({ place: "message", index: 0 });
    expect(differenceOf(payload, replaced(payload, "A file.", "Masked."))).toMatchObject({ place: "message" });
    expect(differenceOf(payload, replaced(payload, '"edit"', '"write"'))).toEqual({ place: "tools", how: "set" });
    expect(differenceOf(payload, replaced(payload, '"path":{"type":"string"}', '"path":{"type":"number"}'))).toEqual({
      place: "tools",
      how: "set",
    });
  },
);

test("tools in another order are the same tools", () => {
  const { tools } = openai();
  expect(differenceOf(openai(), { ...openai(), tools: tools.toReversed() })).toEqual({ place: "tools", how: "order" });
});

test("tools that are added at the list's end are no difference", () => {
  const later = { name: "later", description: "", input_schema: {}, defer_loading: true };
  const grown = { ...anthropic(), tools: [...anthropic().tools, later] };
  expect(differenceOf(anthropic(), grown)).toBeUndefined();
  expect(
    differenceOf(anthropic(), { ...anthropic(), tools: [...anthropic().tools, { ...later, defer_loading: false }] }),
  ).toEqual({
    place: "tools",
    how: "set",
  });
});

test("a mark that has moved on, and the text that was a block for it, are no difference", () => {
  const payload = anthropic();
  const last = payload.messages.at(-1) as (typeof payload.messages)[number];
  const unmarked = { ...last, content: "What now?" };
  const answer = { role: "assistant", content: [{ type: "text", text: "This." }] };
  const next = { role: "user", content: [{ type: "text", text: "And now?", cache_control: { type: "ephemeral" } }] };
  const grown = { ...payload, messages: [...payload.messages.slice(0, -1), unmarked, answer, next] };
  expect(differenceOf(payload, grown)).toBeUndefined();
});

test("results added one by one to the last message are no difference, but are one in an earlier message", () => {
  const payload = { ...anthropic(), messages: anthropic().messages.slice(0, 3) };
  const last = payload.messages[2] as (typeof payload.messages)[number];
  const more = { type: "tool_result", tool_use_id: "t2", content: "More.", is_error: false };
  const grown = {
    ...payload,
    messages: [...payload.messages.slice(0, 2), { ...last, content: [...last.content, more] }],
  };
  expect(differenceOf(payload, grown)).toBeUndefined();
  const behind = [...payload.messages, { role: "user", content: "Go on." }];
  const inner = [...grown.messages, { role: "user", content: "Go on." }];
  expect(differenceOf({ ...payload, messages: behind }, { ...payload, messages: inner })).toEqual({
    place: "message",
    index: 2,
  });
});

test("a conversation that ends earlier differs where the previous one continued", () => {
  const { messages } = openai();
  expect(differenceOf(openai(), { ...openai(), messages: messages.slice(0, 2) })).toEqual({
    place: "message",
    index: 1,
  });
});

test("the thinking options are compared separately, after everything else", () => {
  expect(differenceOf(openai(), { ...openai(), reasoning_effort: "high" })).toEqual({ place: "settings" });
  expect(differenceOf(responses(), { ...responses(), max_output_tokens: 1 })).toBeUndefined();
  expect(differenceOf(google(), { ...google(), config: { ...google().config, maxOutputTokens: 1 } })).toBeUndefined();
});

test.for([
  ["nothing", undefined],
  ["null", null],
  ["a text", "text"],
  ["a list", []],
  ["a payload of an unknown API", { prompt: "Hello." }],
] as const)("%s is not looked into", ([, payload]) => {
  expect(viewOf(payload)).toBeUndefined();
});

test("a value that contains itself ends the comparison", () => {
  const message: Record<string, unknown> = { role: "user" };
  message["content"] = [message];
  const other: Record<string, unknown> = { role: "user" };
  other["content"] = [other];
  expect(
    firstDifference(viewOf({ messages: [message] }) as PayloadView, viewOf({ messages: [other] }) as PayloadView),
  ).toEqual({
    place: "message",
    index: 0,
  });
});

test("a provider's payload is not a list of pi's messages, and masked text in it is found where the service reads it", () => {
  const places = Object.fromEntries(
    Object.entries(payloads).map(([api, make]) => {
      const masked = replaced(make(), "A file.", "[masked]");
      return [api, [JSON.stringify(masked).includes("toolResult"), differenceOf(make(), masked)]];
    }),
  );
  expect(places).toEqual({
    anthropic: [false, { place: "message", index: 2 }],
    openai: [false, { place: "message", index: 2 }],
    responses: [false, { place: "message", index: 2 }],
    google: [false, { place: "message", index: 2 }],
  });
});
