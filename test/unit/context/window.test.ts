import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { bareInspection } from "../../../context/parts/optimisation/inspection.ts";
import { type WindowSources, windowContent } from "../../../context/parts/optimisation/window.ts";
import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";
import { CARRIER_TYPE, DELIVERY_MARK } from "../../../protocol/link.ts";
import { fakeContext, fakeHost } from "./fake-host.ts";

const prompt = "p".repeat(1_000);
/** A token is a character, and an image has 500. */
const estimator = {
  text: (text: string) => text.length,
  message: (message: AgentMessage) => {
    const { content } = message as { readonly content: string | readonly Record<string, string>[] };
    if (typeof content === "string") return content.length;
    const sizes = content.map(({ type, text = "", thinking = "" }) =>
      type === "image" ? 500 : text.length + thinking.length,
    );
    return sizes.reduce((sum, size) => sum + size, 0);
  },
};

const text = (size: number) => ({ type: "text", text: "t".repeat(size) });
const toolResult = { role: "toolResult", toolName: "read" } as const;
const push = { role: "custom", customType: "note" } as const;
const said = {
  user: { role: "user", content: [text(100), { type: "image", data: "", mimeType: "image/png" }] },
  answer: { role: "assistant", content: [{ type: "thinking", thinking: "x".repeat(70) }, text(30)] },
  covered: { ...toolResult, content: [text(5_000)] },
  result: { ...toolResult, content: [text(900)], timestamp: 5 },
  pushed: { ...push, content: "n".repeat(40), details: { [DELIVERY_MARK]: { deliveryId: crypto.randomUUID() } } },
  carrier: { role: "custom", customType: CARRIER_TYPE, content: "c".repeat(60) },
  // It is the prompt, which pi has written into the file.
  system: { role: "system", content: prompt },
} as unknown as Readonly<Record<string, AgentMessage>>;

function found(more: Partial<WindowSources> = {}, reported?: number) {
  const entries = Object.entries(said).map(
    ([id, message]) => ({ type: "message", id, message, parentId: null, timestamp: "" }) as SessionEntry,
  );
  const usage = { input: reported, output: 0, cacheRead: 0, cacheWrite: 0 };
  const last = { role: "assistant", content: [], stopReason: "stop", usage } as unknown as AgentMessage;
  const answered = { type: "message", id: "last", message: last, parentId: null, timestamp: "" } as SessionEntry;
  const branch = reported === undefined ? entries : [...entries, answered];
  const ctx = { ...fakeContext(branch), getSystemPrompt: () => prompt };
  ctx.sessionManager.buildSessionProjection = () =>
    ({ entries: entries.map((sourceEntry) => ({ sourceEntry, messages: [said[sourceEntry.id]] })) }) as never;
  return windowContent(host(ctx), { estimator, ...more }, ctx);
}

function host(ctx: ExtensionContext) {
  const pi = {
    getActiveTools: () => ["read"],
    getAllTools: () => [{ name: "read", description: "d", parameters: {} }, { name: "off" }],
  } as unknown as ExtensionAPI;
  return { ...fakeHost(ctx), pi };
}

const tools = JSON.stringify({ name: "read", description: "d", parameters: {} }).length;
const sum = (values: Readonly<Record<string, number>>) => Object.values(values).reduce((all, one) => all + one, 0);

test("each part of the next request is counted once: the prompt, and nothing that requests leave out", () => {
  const { used, byKind } = found();
  expect(byKind()).toEqual({
    ...{ system: 1_000, tools, user: 100, images: 500, assistant: 30, thinking: 70 },
    ...{ toolResults: 5_900, pushes: 40 },
  });
  expect(used).toBe(sum(byKind()));
});

test("blocks take the place of the messages that they replace", () => {
  const blocks = { over: (id: string) => (id === "covered" ? {} : undefined), active: [{ tokensAfter: 200 }] };
  const { used, byKind, largest } = found({ blocks: () => blocks });
  expect(byKind()).toMatchObject({ toolResults: 900, blocks: 200 });
  expect(used).toBe(sum(byKind()));
  expect(largest(2)).toEqual([
    { entryId: "result", kind: "toolResults", tool: "read", at: 5, tokens: 900 },
    { entryId: "user", kind: "user", tokens: 600 },
  ]);
});

test("the kinds add up to the reported size of the request, whatever the estimates of its parts", () => {
  for (const reported of [1, 7, 668, 12_345, 199_999]) {
    const { used, byKind, largest } = found({ estimator: { ...estimator, context: () => reported } }, reported);
    expect([used, sum(byKind())]).toEqual([reported, reported]);
    expect(sum(byKind(({ of }) => (of === "user" ? "user" : "other")))).toBe(used);
    expect(largest(20).length).toBe(5);
  }
  const { used, byKind } = found({ estimator: { ...estimator, context: () => 100 }, pruned: () => 5_000 }, 9_000);
  expect([used, sum(byKind())]).toEqual([5_000, 5_000]);
  // More is estimated to have left than was reported.
  expect(found({ estimator: { ...estimator, context: () => 9_000 }, pruned: () => 0 }, 9_000).used).toBe(found().used);
});

test.each(["__proto__", "constructor"])("a message of the role %j is one of an extension", (role) => {
  const { user } = said;
  try {
    Object.assign(said, { user: { role, content: [text(100)] } });
    const { byKind, largest } = found();
    expect(byKind()).toMatchObject({ custom: 100 });
    expect(largest(20).find(({ entryId }) => entryId === "user")?.kind).toBe("custom");
  } finally {
    Object.assign(said, { user });
  }
});

test("a window of which pi does not know the size is not known", () => {
  const ctx = fakeContext();
  const nowhere = { ...ctx, model: { ...ctx.model, contextWindow: 0 } } as ExtensionContext;
  expect(bareInspection(host(nowhere), nowhere).window.tokens).toBeNull();
  expect(bareInspection(host(ctx), ctx).window.tokens).toBe(200_000);
});
