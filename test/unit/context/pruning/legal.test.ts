import { expect, test } from "vitest";
import type { RequestEntries } from "../../../../context/parts/map/request-entries.ts";
import { flawsIn, flawsInPayload } from "../../../../context/pruning/flaws.ts";
import { Legality } from "../../../../context/pruning/legal.ts";
import { tagOf } from "../../../../extension/message-tag.ts";
import type { AgentMessage } from "../../../../extension/pi-types.ts";
import { partial } from "../../../helpers/partial.ts";
import { fakeContext, fakeHost } from "../fake-host.ts";

const made = (fields: object): AgentMessage => ({ timestamp: 1, ...fields }) as unknown as AgentMessage;
const user = (...texts: readonly string[]) =>
  made({ role: "user", content: texts.map((text) => ({ type: "text", text })) });
const calling = (...ids: readonly string[]) =>
  made({ role: "assistant", stopReason: "toolUse", content: ids.map((id) => ({ type: "toolCall", id })) });
const result = (toolCallId: string) => made({ role: "toolResult", toolCallId, content: [] });
const saying = (text: string, stopReason = "stop") =>
  made({ role: "assistant", stopReason, content: [{ type: "text", text }] });
const thinking = (fields: object) =>
  made({ role: "assistant", stopReason: "stop", content: [{ type: "thinking", thinking: "a", ...fields }] });
const hidden = made({ role: "bashExecution", excludeFromContext: true });

const orphan = "a result without its call";
const empty = "an empty answer";
const noUser = "no message of the user in front";

test.each([
  [[user("a"), calling("c1", "c2"), result("c2"), result("c1"), saying("b")], []],
  [[made({ role: "system" }), made({ role: "compactionSummary" }), saying("a")], []],
  [[user("a"), calling("c1"), hidden, result("c1")], []],
  [[user("a"), saying("", "aborted")], []],
  [[user("a"), result("c1")], [orphan]],
  [[user("a"), calling("c1"), result("c1"), result("c1")], [orphan]],
  [[user("a"), calling("c1"), user("b"), result("c1")], [orphan]],
  [[user("a"), saying(" "), user("b")], [empty]],
  [[user("a"), thinking({ thinkingSignature: "s" }), user("b")], [empty]],
  [[user("a"), thinking({}), user("b")], []],
  [[saying("a"), user("b")], [noUser]],
  [[], []],
])("what services refuse is found in a list of messages: %#", (messages, flaws) => {
  expect([...flawsIn(messages)]).toEqual(flaws);
});

const say = { role: "user", content: "a" };
test.each([
  ["OpenAI", [say, { role: "assistant", tool_calls: [{ id: "c" }] }, { role: "tool", tool_call_id: "c" }], []],
  ["OpenAI", [say, { role: "tool", tool_call_id: "c" }, { role: "assistant", content: "" }], [orphan, empty]],
  ["OpenAI", [{ role: "system" }, { role: "assistant", content: "a" }, say], [noUser]],
  ["Responses", [say, { type: "function_call", call_id: "c" }, { type: "function_call_output", call_id: "c" }], []],
  ["Responses", [say, { type: "function_call_output", call_id: "c" }], [orphan]],
  ["Anthropic", [say, { role: "assistant", content: [{ type: "tool_use", id: "c" }] }], []],
  ["Anthropic", [say, { role: "user", content: [{ type: "tool_result", tool_use_id: "c" }] }], [orphan]],
  ["Google", [{ role: "user", parts: [{ functionResponse: { name: "n" } }] }], [orphan]],
  [
    "Google",
    [
      say,
      { role: "model", parts: [{ functionCall: { name: "n" } }] },
      { parts: [{ functionResponse: { name: "n" } }] },
    ],
    [],
  ],
  ["Bedrock", [say, { role: "user", content: [{ toolResult: { toolUseId: "c" } }] }], [orphan]],
  ["others", [null, 1, "a", { content: [null, [1]] }], []],
])("and in a payload for %s: %#", (_name, messages, flaws) => {
  expect([...flawsInPayload(messages)]).toEqual(flaws);
});

function host({ isWhole = true, off }: { readonly isWhole?: boolean; readonly off?: string } = {}) {
  const ctx = fakeContext();
  const host = fakeHost(ctx);
  let isAmbiguous = false;
  const entries = partial<RequestEntries>({ isWhole: () => isWhole, isAmbiguous: () => isAmbiguous });
  const legality = new Legality({ ...host, entries, off: () => off });
  return {
    ...host,
    legality,
    begins: (ambiguous: boolean) => {
      isAmbiguous = ambiguous;
      host.pipeline.run("context", { type: "context", messages: [] }, ctx);
    },
    request: (messages: readonly AgentMessage[], payload?: unknown): readonly AgentMessage[] => {
      const asked = host.pipeline.run("context_with_system", messages, ctx);
      if (payload !== undefined) host.pipeline.run("before_provider_request", payload, ctx);
      return asked;
    },
    messages: () => host.notices.map(({ data }) => (data as { readonly message: string }).message),
  };
}

test("a violation by pruning is undone: the request is made unpruned, and the model call continues", () => {
  const it = host();
  it.legality.begin();
  it.pipeline.use("context_with_system", "blocks", (messages) => messages.slice(2), "wrong");
  it.legality.verify();
  const messages = [user("a"), calling("c1"), result("c1")];
  expect(it.request(messages)).toBe(messages);
  expect(it.faults.map(({ thrown }) => String(thrown))).toEqual([
    "Error: Pruning was undone: the request had no message of the user in front.",
  ]);
  expect(it.notices).toEqual([]);
});

test("a violation by others before our stage is reported once, and stays", () => {
  const it = host({ isWhole: false });
  it.legality.begin();
  it.legality.verify();
  const messages = [user("a"), result("c1")];
  expect(it.request(messages)).toBe(messages);
  it.request(messages);
  expect(it.messages()).toEqual([
    "Another extension has changed the messages of a request so that it has a result without its call.",
  ]);
});

test("a session that is invalid by itself is not attributed to another extension", () => {
  const it = host();
  it.legality.begin();
  it.legality.verify();
  it.request([user("a"), result("c1")], { messages: [say, { role: "tool", tool_call_id: "c1" }] });
  expect(it.notices).toEqual([]);
});

test("content that a later extension removed or broke is found in the payload", () => {
  const messages = [user("a", tagOf("m001")), user("b", tagOf("m002"))];
  const sent = (...contents: readonly string[]) => ({
    messages: contents.map((content) => ({ role: "user", content })),
  });
  const found = (payload: unknown): readonly string[] => {
    const it = host();
    it.legality.begin();
    it.legality.verify();
    it.request(messages, payload);
    return it.messages();
  };
  const changed = "Another extension has changed or left out messages that pruning has given to pi.";
  expect(found(sent(`a\n${tagOf("m001")}`, `b${tagOf("m002")} and more`))).toEqual([]);
  expect(found(sent(`a\n${tagOf("m001")}`))).toEqual([changed]);
  expect(found({ ...sent("a"), max_tokens: 1 })).toEqual([]);
  expect(found({ unknown: "shape" })).toEqual([]);
  expect(
    found({ messages: [{ role: "tool", tool_call_id: "c" }, ...sent(tagOf("m001"), tagOf("m002")).messages] }),
  ).toEqual(
    [noUser, orphan].map((flaw) => `Another extension has changed the messages of a request so that it has ${flaw}.`),
  );
});

test("a request with indistinguishable messages is reported once, until they are distinguishable again", () => {
  const it = host();
  it.legality.begin();
  for (const isAmbiguous of [true, true, false, true]) it.begins(isAmbiguous);
  expect(it.notices.map(({ data }) => (data as { readonly reason: string }).reason)).toEqual(["mapping", "mapping"]);
});

test("nothing is checked while pruning is off", () => {
  const it = host({ isWhole: false, off: "Off." });
  it.legality.begin();
  it.legality.verify();
  it.request([result("c1")], { messages: [{ role: "tool", tool_call_id: "c1" }] });
  it.begins(true);
  expect(it.notices).toEqual([]);
});
