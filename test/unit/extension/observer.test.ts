import type { CacheWarmingDecisionEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { InsertedPushes } from "../../../extension/delivery/inserted.ts";
import { Observer } from "../../../extension/delivery/observer.ts";
import type { OutwardBody } from "../../../extension/link/outbound.ts";
import { emptyMemory } from "../../../extension/memory.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { partial, unchecked } from "../../helpers/partial.ts";
import { compaction, pushed, session, user } from "./session.ts";

const decision: CacheWarmingDecisionEvent = {
  type: "cache_warming_decision",
  warmCost: 1,
  missCost: 2,
  continuationProbability: 1,
  action: "warm",
};
const custom = (deliveryId: string): AgentMessage =>
  unchecked({ role: "custom", customType: "test", content: "Hello.", details: { "pi-rpcd": { deliveryId } } });
const assistant = (stopReason: string, errorMessage?: string): AgentMessage =>
  unchecked({ role: "assistant", api: "openai-completions", content: [], stopReason, errorMessage });
const payload = { messages: [{ role: "user", content: "Hello." }] };

function observed(...ids: readonly string[]) {
  const memory = emptyMemory();
  const inserted = new InsertedPushes(memory.inserted);
  for (const id of ids) inserted.add({ deliveryId: id, entryId: `e-${id}`, content: "Hello." });
  const reader = session(user("u1"), ...ids.map((id) => pushed(`e-${id}`, id)));
  const ctx = { sessionManager: reader, signal: undefined } as unknown as ExtensionContext;
  const frames: OutwardBody[] = [];
  const observer = new Observer({ memory, inserted, send: (frame) => frames.push(frame), tell: () => {} });
  return { observer, ctx, frames, reader, inserted, kinds: () => frames.map(({ kind }) => kind) };
}

test("cache warming is prevented only during an open attempt", () => {
  const { observer, ctx } = observed("d1");
  expect(observer.warming(decision)).toBeUndefined();
  observer.offer([custom("d1")], ctx);
  expect(observer.warming(decision)).toMatchObject({ action: "stop" });
  observer.payload(payload);
  observer.messageStart(assistant("pending"), ctx);
  expect(observer.warming(decision)).toMatchObject({ action: "stop" });
  observer.messageUpdate(partial({ assistantMessageEvent: { type: "text_delta", delta: "Hi" } }));
  expect(observer.warming(decision)).toBeUndefined();
});

test("an update is content only when it adds some", () => {
  const { observer, ctx, kinds } = observed("d1");
  observer.offer([custom("d1")], ctx);
  observer.messageStart(assistant("pending"), ctx);
  for (const event of [
    { type: "text_start" },
    { type: "text_delta", delta: "" },
    { type: "thinking_end", content: "" },
    { type: "toolcall_start" },
  ]) {
    observer.messageUpdate(unchecked({ assistantMessageEvent: event }));
  }
  expect(kinds()).toEqual(["prepared"]);
  observer.messageUpdate(partial({ assistantMessageEvent: { type: "toolcall_end" } }));
  expect(kinds()).toEqual(["prepared", "verdict"]);
});

test("a push that is no longer awaited is in no attempt", () => {
  const { observer, ctx, kinds } = observed();
  observer.offer([custom("d1")], ctx);
  expect(kinds()).toEqual([]);
});

test("a push in two messages of a list is one push", () => {
  const { observer, ctx, frames } = observed("d1");
  observer.offer([custom("d1"), custom("d1")], ctx);
  expect(frames).toMatchObject([{ kind: "prepared", deliveryIds: ["d1"] }]);
});

test("an omission is reported for each such request, unless the push was delivered", () => {
  const { observer, ctx, frames } = observed("d1", "d2");
  observer.offer([custom("d1"), custom("d2")], ctx);
  observer.payload({ messages: [...payload.messages, ...payload.messages] });
  observer.headers({ type: "after_provider_response", status: 200, headers: { "content-type": "text/event-stream" } });
  observer.messageStart(assistant("pending"), ctx);
  observer.messageEnd(assistant("error", "terminated"), ctx);
  observer.offer([], ctx);
  expect(frames.filter(({ kind }) => kind === "leftOut")).toEqual([]);
  const late = observed("d1");
  late.observer.offer([], late.ctx);
  late.observer.offer([], late.ctx);
  const removed = { kind: "leftOut", deliveryIds: ["d1"], reason: "removed_by_extension" };
  expect(late.frames).toEqual([removed, removed]);
  late.observer.offer([custom("d1")], late.ctx);
  expect(late.frames.at(-1)).toMatchObject({ kind: "prepared", deliveryIds: ["d1"] });
});

test("a push that no request can contain again is reported as left out once", () => {
  const { observer, ctx, frames, reader } = observed("d1");
  reader.add(compaction("c1", "c1"));
  observer.offer([], ctx);
  observer.offer([], ctx);
  expect(frames).toEqual([{ kind: "leftOut", deliveryIds: ["d1"], reason: "compacted" }]);
});

test.for([
  ["529 Overloaded", 529],
  ['400: {"message":"no"}', 400],
  ["Bedrock error (503): unavailable", 503],
  ["Connection error.", undefined],
  ["terminated after 500 bytes", undefined],
  ["200: fine", undefined],
  ['{"error":{"code":503,"message":"No.","status":"UNAVAILABLE"}}', 503],
  ['{"error":{"code":"503","message":"No."}}', undefined],
] as const)("the status in %j is %s", ([errorMessage, status]) => {
  const { observer, ctx, frames } = observed("d1");
  observer.offer([custom("d1")], ctx);
  observer.messageStart(assistant("error", errorMessage), ctx);
  expect(frames[1]).toEqual({
    kind: "verdict",
    requestId: expect.any(String),
    outcome: "failed",
    error: errorMessage,
    payload: { d1: "unchecked" },
    ...(status === undefined ? {} : { status }),
  });
});

test("an abort counts as one though pi calls it an error", () => {
  const { observer, ctx, frames } = observed("d1");
  observer.offer([custom("d1")], ctx);
  observer.messageStart(assistant("error", "This operation was aborted"), { ...ctx, signal: AbortSignal.abort() });
  expect(frames[1]).toMatchObject({ outcome: "aborted" });
});
