import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { describe, expect, test } from "vitest";
import { estimateMessage } from "../../../context/document/estimate.ts";
import { rootInstructions, withInstructions, withPrefix } from "../../../context/parts/structured/request-messages.ts";
import { compactionCount, StructuredContext } from "../../../context/parts/structured/structured-context.ts";
import { deliveryIdOf } from "../../../extension/delivery/marker.ts";
import { emptyMemory } from "../../../extension/memory.ts";
import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";
import { RequestPipeline } from "../../../extension/request-pipeline.ts";
import { CARRIER_TYPE } from "../../../protocol/link.ts";
import type { BuiltMessage, HelperContext } from "../../../protocol/link-context.ts";
import { assistant, compaction, type FakeSession, session, user } from "../extension/session.ts";

const message = (role: string, content: string, fields: object = {}): AgentMessage =>
  ({ role, content, timestamp: 1, ...fields }) as unknown as AgentMessage;
const head = message("system", "You are pi.");
const patch = message("system", "", { sections: { date: "Monday" } });
const prompt = message("user", "Go on.");
const said = (text: string): BuiltMessage => ({ role: "user", content: [{ type: "text", text }], timestamp: 1 });
const custom = (fields: object): BuiltMessage =>
  ({ role: "custom", customType: "note", content: "A note.", display: true, timestamp: 2, ...fields }) as BuiltMessage;

/** Spans of a question, a call, its result and an answer each, of about the same size. */
function spans(count: number): BuiltMessage[] {
  const model = { api: "a", provider: "p", model: "m", usage: {} };
  return Array.from({ length: count }, (_, n): BuiltMessage[] => [
    said(`Question ${n}. ${"Why is that so? ".repeat(30)}`),
    {
      role: "assistant",
      content: [{ type: "toolCall", id: `c${n}`, name: "read", arguments: { path: "file" } }],
      ...model,
      stopReason: "toolUse",
      timestamp: 2,
    },
    {
      role: "toolResult",
      toolCallId: `c${n}`,
      toolName: "read",
      content: [{ type: "text", text: "result ".repeat(20) }],
      isError: false,
      timestamp: 3,
    },
    {
      role: "assistant",
      content: [{ type: "text", text: `Answer ${n}.` }],
      ...model,
      stopReason: "stop",
      timestamp: 4,
    },
  ]).flat();
}

const sizeOf = (messages: readonly BuiltMessage[]): number =>
  messages.reduce((tokens, one) => tokens + estimateMessage(one), 0);

const context = (fields: Partial<HelperContext> = {}): HelperContext => ({
  hash: "a".repeat(64),
  messages: [said("Before.")],
  budget: null,
  afterCompaction: "trim",
  ...fields,
});

interface Place {
  readonly structured: StructuredContext;
  readonly ctx: ExtensionContext;
  readonly faults: string[];
  readonly session: FakeSession;
  /** The list from which pi makes a request, for a given conversation. */
  request(...messages: readonly AgentMessage[]): readonly AgentMessage[];
}

/** One life of the extensions in a session, with a memory that exists before and after. */
function life(options: { id?: string; memory?: ReturnType<typeof emptyMemory>; session?: FakeSession } = {}): Place {
  const { id = "s1", memory = emptyMemory(), session: fake = session(user("u1")) } = options;
  const faults: string[] = [];
  const fault = (where: string): void => void faults.push(where);
  const structured = new StructuredContext({ memory, fault });
  const pipeline = new RequestPipeline(fault);
  structured.addStages(pipeline);
  const sessionManager = { ...fake, getLeafEntry: fake.getLeafEntry, getEntry: fake.getEntry };
  const ctx = {
    sessionManager: { ...sessionManager, getSessionId: () => id, getEntries: () => fake.entries },
  } as unknown as ExtensionContext;
  const request: Place["request"] = (...messages) => pipeline.run("context_with_system", messages, ctx);
  return { structured, ctx, faults, session: fake, request };
}

/** The module for trimming is loaded when it may be needed; waiting lives get modules in order. */
const loaded = (): Promise<unknown> => import("../../../context/document/trim.ts");

describe("the past of a conversation", () => {
  test("comes after the leading system messages, whatever follows", () => {
    const past = [said("Before.")];
    expect(withPrefix([head, patch, prompt, patch], past)).toEqual([head, patch, ...past, prompt, patch]);
    expect(withPrefix([prompt], past)).toEqual([...past, prompt]);
    expect(withPrefix([head], past)).toEqual([head, ...past]);
    expect(withPrefix([], past)).toEqual(past);
    const messages = [head, prompt];
    expect(withPrefix(messages, [])).toBe(messages);
  });

  test("is identical in each request, though another extension writes to its messages", () => {
    const { structured, ctx, request } = life();
    structured.sessionStarted("startup", ctx);
    structured.take(context(), ctx);
    const first = request(head, prompt) as unknown as { content: { text: string }[]; timestamp: number }[];
    const text = JSON.stringify(first);
    Object.assign(first[1]?.content[0] ?? {}, { text: "Changed." });
    Object.assign(first[1] ?? {}, { timestamp: 2 });
    expect(JSON.stringify(request(head, prompt))).toBe(text);
  });

  test("is accepted once: the same one again changes nothing, another one replaces it", () => {
    const { structured, ctx, request } = life();
    structured.sessionStarted("startup", ctx);
    expect(structured.take(context(), ctx)).toEqual({ hash: "a".repeat(64), messages: 1 });
    expect(structured.take(context(), ctx)).toEqual({ hash: "a".repeat(64), messages: 1 });
    expect(request(head, prompt)).toHaveLength(3);
    structured.take(context({ hash: "b".repeat(64), messages: [said("Other."), said("More.")] }), ctx);
    expect(request(head, prompt)).toEqual([head, said("Other."), said("More."), prompt]);
  });

  test("survives reloads and a fork, once, but not a new session or a switch to another one", () => {
    const memory = emptyMemory();
    const first = life({ memory });
    first.structured.sessionStarted("startup", first.ctx);
    first.structured.take(context(), first.ctx);
    const next = (reason: "reload" | "fork" | "new" | "resume", id: string): readonly AgentMessage[] => {
      const { structured, ctx, request } = life({ memory, id });
      structured.sessionStarted(reason, ctx);
      return request(head, prompt);
    };
    const whole = [head, said("Before."), prompt];
    expect(next("reload", "s1")).toEqual(whole);
    expect(next("reload", "s1")).toEqual(whole);
    expect(next("fork", "s2")).toEqual(whole);
    expect(next("fork", "s2")).toEqual(whole);
    expect(next("reload", "s2")).toEqual(whole);
    expect(next("reload", "s1")).toEqual([head, prompt]);
    expect(next("fork", "s3")).toEqual([head, prompt]);
  });

  test.for(["new", "resume", "startup"] as const)("is not reused in a session with the reason %s", (reason) => {
    const memory = emptyMemory();
    const before = life({ memory });
    before.structured.take(context({ instructions: "Be brief." }), before.ctx);
    const { structured, ctx, request } = life({ memory, id: "s2" });
    structured.sessionStarted(reason, ctx);
    expect(request(head, prompt)).toEqual([head, prompt]);
  });

  test("contains no deliveries of another session", () => {
    const { structured, ctx, request } = life();
    const mark = { "pi-rpcd": { deliveryId: "d1" } };
    structured.take(
      context({
        messages: [
          said("Before."),
          custom({ details: { ...mark, own: 1 } }),
          custom({ customType: CARRIER_TYPE, content: "Go on with the messages above." }),
        ],
      }),
      ctx,
    );
    const sent = request(head, prompt);
    expect(sent).toEqual([head, said("Before."), custom({ details: { own: 1 } }), prompt]);
    expect(sent.map(deliveryIdOf)).toEqual([undefined, undefined, undefined, undefined]);
  });
});

describe("after a compaction", () => {
  const messages = spans(16);
  const budget = sizeOf(messages) + 1_000;

  test("a trimmed past keeps half of its budget, then a quarter, in whole spans", async () => {
    const { structured, ctx, request, session: fake, faults } = life();
    structured.take(context({ messages, budget }), ctx);
    await loaded();
    expect(request(head, prompt)).toHaveLength(messages.length + 2);
    let kept = messages.length;
    for (const [nth, share] of [2, 4, 8].entries()) {
      fake.add(compaction(`k${nth}`, "u1"));
      const left = request(head, prompt).slice(1, -1) as unknown as readonly BuiltMessage[];
      expect(sizeOf(left)).toBeLessThanOrEqual(budget / share);
      expect(left.length).toBeLessThan(kept);
      kept = left.length;
      expect(left[0]).toMatchObject({ customType: "pi-rpcd.event", details: { eventType: "context.trimmed" } });
      expect(left.slice(1)).toEqual(messages.slice(1 - kept));
      expect(left[1]?.role).toBe("user");
      expect(left[0]).toMatchObject({ details: { meta: { messages: messages.length - kept + 1 } } });
      expect(JSON.stringify(request(head, prompt).slice(1, -1))).toBe(JSON.stringify(left));
    }
    expect(faults).toEqual([]);
  });

  test("a past whose newest span does not fit leaves a notice", async () => {
    const { structured, ctx, request, session: fake, faults } = life();
    structured.take(context({ messages: [said("A word. ".repeat(1_000))] }), ctx);
    await loaded();
    fake.add(compaction("k1", "u1"));
    expect(request(head, prompt)).toMatchObject([
      { role: "system" },
      { details: { eventType: "context.trimmed", meta: { messages: 1 } } },
      { role: "user", content: "Go on." },
    ]);
    expect(faults).toEqual([]);
  });

  test.for([
    ["keep", messages.length],
    ["drop", 0],
  ] as const)("the policy %s is kept to, and the instructions stay", ([afterCompaction, left]) => {
    const { structured, ctx, request, session: fake } = life();
    structured.take(context({ messages, afterCompaction, instructions: "Be brief." }), ctx);
    fake.add(compaction("k1", "u1"));
    fake.add(compaction("k2", "u1"));
    const sent = request(head, prompt);
    expect(sent).toHaveLength(left + 2);
    expect(sent[0]).toMatchObject({ sections: { prior_instructions: expect.stringContaining("Be brief.") } });
  });

  test("a trimmed past stays trimmed after a reload, and is complete on a branch from before", async () => {
    const memory = emptyMemory();
    const first = life({ memory });
    first.structured.take(context({ messages, budget }), first.ctx);
    first.session.add(compaction("k1", "u1"));
    await loaded();
    const trimmed = first.request(head, prompt);
    const { structured, ctx, request } = life({ memory, session: first.session });
    structured.sessionStarted("reload", ctx);
    await loaded();
    expect(request(head, prompt)).toEqual(trimmed);
    first.session.leaf = "u1";
    expect(request(head, prompt)).toHaveLength(messages.length + 2);
  });

  test("a compaction from before the context does not count", () => {
    const { structured, ctx, request } = life({ session: session(user("u1"), compaction("k1", "u1")) });
    structured.take(context({ afterCompaction: "drop" }), ctx);
    expect(request(head, prompt)).toHaveLength(3);
  });

  test("only compactions on the active branch are counted", () => {
    const fake = session(user("u1"), compaction("k1", "u1"), assistant("a1"));
    const count = compactionCount();
    expect(count.of(fake)).toBe(1);
    fake.add(compaction("k2", "u1"));
    fake.add(user("u2"));
    expect(count.of(fake)).toBe(2);
    expect(count.of(fake)).toBe(2);
    fake.leaf = "u1";
    expect(count.of(fake)).toBe(0);
    fake.add(compaction("k3", "u1"));
    expect(count.of(fake)).toBe(1);
    expect(count.of(session())).toBe(0);
  });
});

describe("prior instructions", () => {
  const section = "<prior_instructions>\nBe brief.\n</prior_instructions>";
  const root = (fields: object = {}): SessionEntry[] => [
    {
      type: "custom",
      id: "r",
      parentId: null,
      timestamp: "2026-01-01T00:00:00.000Z",
      customType: "pi-rpcd.context",
      data: { version: 1, instructions: "Be brief." },
      ...fields,
    } as unknown as SessionEntry,
  ];

  test("are the last section of the head, once, and nowhere else", () => {
    const full = message("system", "You are pi.", { sections: { prior_instructions: "Old.", date: "Monday" } });
    const sent = withInstructions([full, prompt, patch], section);
    expect(sent).toEqual([{ ...full, sections: { date: "Monday", prior_instructions: section } }, prompt, patch]);
    expect(Object.keys((sent[0] as { sections: object }).sections)).toEqual(["date", "prior_instructions"]);
    expect(withInstructions(sent, section)).toEqual(sent);
    expect(full).toMatchObject({ sections: { prior_instructions: "Old." } });
  });

  test("create a head if there is none", () => {
    expect(withInstructions([prompt], section)).toEqual([
      { role: "system", content: "", sections: { prior_instructions: section }, timestamp: 0 },
      prompt,
    ]);
  });

  test("come from the root entry of the session's file, which any program may have written", () => {
    expect(rootInstructions(root())).toBe("Be brief.");
    for (const wrong of [
      [],
      root({ customType: "other" }),
      root({ type: "message" }),
      root({ parentId: "a" }),
      root({ data: null }),
      root({ data: { version: 2, instructions: "Be brief." } }),
      root({ data: { version: 1, instructions: 7 } }),
      root({ data: { version: 1, instructions: "" } }),
    ])
      expect(rootInstructions(wrong)).toBeUndefined();
  });

  test("of a file are read when the session begins, and are overridden by those from the link", () => {
    const fake = session({ type: "custom", id: "r", customType: "pi-rpcd.context", data: root()[0] });
    const { structured, ctx, request } = life({ session: fake });
    structured.sessionStarted("startup", ctx);
    expect(request(head, prompt)).toEqual([head, prompt]);
    const written = session({
      type: "custom",
      id: "r",
      customType: "pi-rpcd.context",
      data: { version: 1, instructions: "Be brief." },
    });
    const next = life({ session: written });
    next.structured.sessionStarted("resume", next.ctx);
    expect(next.request(head, prompt)).toEqual([{ ...head, sections: { prior_instructions: section } }, prompt]);
    next.structured.take(context({ instructions: "Be long." }), next.ctx);
    expect(next.request(head, prompt)[0]).toMatchObject({
      sections: { prior_instructions: "<prior_instructions>\nBe long.\n</prior_instructions>" },
    });
  });
});
