import type { ExtensionContext, SessionBeforeCompactEvent } from "@earendil-works/pi-coding-agent";
import { describe, expect, test } from "vitest";
import type { SeenEntry } from "../../../../context/parts/compaction/cut.ts";
import { coveredPrefix, cutAround, shownEntries } from "../../../../context/pruning/native/covered.ts";
import { NativeCompaction, SummaryFailures } from "../../../../context/pruning/native/native-compaction.ts";
import type { Block, BlockTree, PruningServices, Usage } from "../../../../context/pruning/pruning-services.ts";
import type { AgentMessage, SessionEntry } from "../../../../extension/pi-types.ts";
import { defaultOptimisation } from "../../../../protocol/optimisation/config.ts";
import { defaultPruning } from "../../../../protocol/pruning/config.ts";
import { unchecked } from "../../../helpers/partial.ts";
import { Branch } from "./branch.ts";

/** An entry of this many tokens. */
function seen(id: string, role: string, tokens = 100, type = "message"): SeenEntry {
  const content = role === "compactionSummary" ? {} : { content: [{ type: "text", text: id }] };
  const message = { role, ...content, summary: `Summary ${id}.`, timestamp: 1, tokens };
  return { sourceEntry: { type, id } as SessionEntry, messages: [message as unknown as AgentMessage] };
}

function block(id: string, ...entryIds: string[]): Block {
  return {
    id,
    topic: `Topic of ${id}`,
    state: { kind: "active" },
    entryId: `result-${id}`,
    firstEntryId: entryIds[0] ?? "",
    lastEntryId: entryIds.at(-1) ?? "",
    entryIds,
    children: [],
    body: [{ text: `Body of ${id}.` }],
    kept: [],
    tokensBefore: 1_000,
    tokensAfter: 20,
  };
}

function treeOf(...active: Block[]): BlockTree {
  return {
    all: active,
    active,
    find: (id) => active.find((one) => one.id === id),
    over: (entryId) => active.find(({ entryIds }) => entryIds.includes(entryId)),
    holder: () => undefined,
    hinders: () => undefined,
  };
}

const context = [
  seen("s0", "system"),
  seen("u1", "user"),
  seen("a1", "assistant", 400),
  seen("t1", "toolResult", 4_000),
  seen("u2", "user"),
  seen("a2", "assistant", 300),
  seen("u3", "user"),
  seen("a3", "assistant", 2_000),
  seen("t3", "toolResult", 1_000),
];
const never = () => false;

describe("the blocks that a context begins with", () => {
  const b1 = block("b1", "u1", "a1", "t1");
  const b2 = block("b2", "u2", "a2");

  test("are those without a gap, and the entries after them are kept", () => {
    const prefix = coveredPrefix(context, treeOf(b1, b2), never);
    expect(prefix).toMatchObject({ firstKeptEntryId: "u3", keptAt: 6, before: [] });
    expect(prefix?.blocks.map(({ id }) => id)).toEqual(["b1", "b2"]);
    expect(coveredPrefix(context, treeOf(b1), never)).toMatchObject({ firstKeptEntryId: "u2" });
    expect(coveredPrefix(context, treeOf(b2), never)).toBeUndefined();
  });

  test("come after the summary of a compaction, which stays", () => {
    const again = [seen("c", "compactionSummary", 50, "compaction"), ...context];
    const prefix = coveredPrefix(again, treeOf(b1), never);
    expect(prefix?.before).toHaveLength(1);
    expect(prefix).toMatchObject({ firstKeptEntryId: "u2" });
  });

  test("are none if nothing would stay, a result would come first, or a push has no answer yet", () => {
    expect(coveredPrefix(context.slice(0, 4), treeOf(b1), never)).toBeUndefined();
    expect(coveredPrefix(context, treeOf(block("b1", "u1", "a1")), never)).toBeUndefined();
    expect(coveredPrefix(context, treeOf(b1), (id) => id === "u1")).toBeUndefined();
    expect(coveredPrefix([], treeOf(b1), never)).toBeUndefined();
  });
});

describe("the visible part of a context", () => {
  test("has each block once, at its first entry, and everything else unchanged", () => {
    const shown = shownEntries(context, treeOf(block("b1", "u1", "a1", "t1")), ({ id }) => `Text of ${id}`);
    expect(shown.map(({ messages }) => messages.length)).toEqual([1, 1, 0, 0, 1, 1, 1, 1, 1]);
    expect(shown[1]?.messages[0]).toMatchObject({ content: [{ type: "text", text: "Text of b1" }] });
    expect(shown[4]).toBe(context[4]);
    expect(shownEntries(context, treeOf(), () => "")).toBe(context);
  });

  test("is cut before a block, or after one with which it begins", () => {
    const tree = treeOf(block("b1", "u1", "a1", "t1"), block("b2", "u2", "a2"));
    expect(cutAround(context, 6, tree)).toBe(6);
    expect(cutAround(context, 5, tree)).toBe(4);
    expect(cutAround(context, 2, tree)).toBe(4);
    expect(cutAround(context.slice(0, 4), 2, tree)).toBeUndefined();
  });
});

interface Stand {
  readonly tree?: BlockTree;
  readonly usage?: Partial<Usage>;
  readonly guard?: boolean;
  readonly fromBlocks?: boolean;
  readonly off?: string;
  readonly window?: number;
  readonly answer?: string | Error;
  readonly stopReason?: string;
}

function stand({
  tree = treeOf(),
  usage,
  guard = true,
  fromBlocks = true,
  off,
  window = 10_000,
  answer,
  stopReason = "stop",
}: Stand) {
  const asked: string[] = [];
  const allowed: number[] = [];
  const shown: string[] = [];
  const branch = new Branch();
  const host = {
    pruning: () => ({ ...defaultPruning, nativeCompaction: { fromBlocks, minPrefixShare: 0.25, guard } }),
    off: () => off,
    usage: () => (usage === undefined ? undefined : { window, share: 0, max: 0.8, min: 0.4, tokens: 0, ...usage }),
    blocks: { on: () => tree, textOf: (one: Block) => `Body of ${one.id}.` },
    estimator: {
      message: (message: AgentMessage) => (message as { tokens?: number }).tokens ?? 20,
      text: (text: string) => text.length / 4,
      request: (messages: readonly { tokens?: number }[]) =>
        messages.reduce((sum, { tokens = 20 }) => sum + tokens, 500),
    },
    isUnanswered: never,
    recall: { missing: () => undefined },
    compaction: () => defaultOptimisation.compaction,
    pi: { appendEntry: (customType: string, data: unknown) => branch.add({ type: "custom", customType, data }) },
    fault: (_where: string, thrown: unknown) => {
      throw thrown;
    },
  } as unknown as PruningServices;
  const ctx = {
    model: { provider: "test", id: "model", contextWindow: window, maxTokens: 1_000 },
    sessionManager: {
      ...branch.context.sessionManager,
      buildSessionProjection: () => ({ entries: context, messages: [] }),
    },
    ui: { notify: (words: string) => shown.push(words) },
    modelRegistry: {
      streamSimple: (
        _model: unknown,
        { messages }: { messages: { content: { text: string }[] }[] },
        { maxTokens }: { maxTokens: number },
      ) => {
        asked.push(messages[0]?.content[0]?.text ?? "");
        allowed.push(maxTokens);
        if (answer instanceof Error) throw answer;
        return {
          result: async () => ({
            role: "assistant",
            stopReason,
            content: [{ type: "text", text: answer }],
            usage: { totalTokens: 5 },
          }),
        };
      },
    },
  } as unknown as ExtensionContext;
  return { native: new NativeCompaction(host, new SummaryFailures(host)), ctx, asked, allowed, shown, branch };
}

function event(
  reason: "threshold" | "manual" | "overflow",
  fields: Partial<SessionBeforeCompactEvent> = {},
): SessionBeforeCompactEvent {
  const preparation = { tokensBefore: 8_000, firstKeptEntryId: "u3", settings: { reserveTokens: 2_000 } };
  return {
    type: "session_before_compact",
    reason,
    willRetry: false,
    signal: new AbortController().signal,
    branchEntries: [],
    preparation: preparation as unknown as SessionBeforeCompactEvent["preparation"],
    ...fields,
  };
}

describe("pi's own compaction", () => {
  const tree = treeOf(block("b1", "u1", "a1", "t1"), block("b2", "u2", "a2"));

  test("is cancelled if the next request is below its threshold, unless it was requested or is necessary", async () => {
    const { native, ctx } = stand({ usage: { tokens: 7_999 } });
    expect(await native.beforePis(event("threshold"), ctx)).toEqual({ cancel: true });
    expect(await native.beforePis(event("manual"), ctx)).toBeUndefined();
    expect(await native.beforePis(event("overflow"), ctx)).toBeUndefined();
    const above = stand({ usage: { tokens: 8_001 } });
    expect(await above.native.beforePis(event("threshold"), above.ctx)).toBeUndefined();
  });

  test("is left alone if the guard or pruning is off, and if the next request is above its threshold", async () => {
    for (const of of [
      { window: 9_000 },
      { usage: { tokens: 1 }, guard: false },
      { usage: { tokens: 1 }, off: "Off." },
    ]) {
      const { native, ctx } = stand(of);
      expect(await native.beforePis(event("threshold"), ctx)).toBeUndefined();
    }
  });

  test("is cancelled directly after another if no usage is reported yet and the visible context is small", async () => {
    const { native, ctx, asked } = stand({ tree, window: 9_000 });
    // Blocks hide 4,900 of the 8,000 tokens; the prompt has 500.
    const tokens = native.tokens(ctx) ?? 0;
    expect([tokens > 3_500, tokens < 3_800]).toEqual([true, true]);
    expect(await native.beforePis(event("threshold"), ctx)).toEqual({ cancel: true });
    expect(asked).toEqual([]);
    expect(stand({ tree, off: "Off." }).native.tokens(ctx)).toBeUndefined();
  });

  test("is built from the blocks that the context begins with, without a model", async () => {
    const { native, ctx, asked } = stand({ tree, usage: { tokens: 9_000 } });
    const made = await native.beforePis(event("manual"), ctx);
    expect(made).toMatchObject({
      compaction: {
        firstKeptEntryId: "u3",
        tokensBefore: 8_000,
        details: { "pi-rpcd": { v: 1, from: "blocks", blocks: ["b1", "b2"] } },
      },
    });
    expect(made?.compaction?.summary).toMatch(
      /Topic: Topic of b1\n\nBody of b1\.(?:.|\n)*Topic: Topic of b2\n\nBody of b2\./,
    );
    expect(asked).toEqual([]);
  });

  test("asks the model if blocks are off or cover too little, or the user gives instructions for the summary", async () => {
    const little = treeOf(block("b1", "u1", "a1"));
    for (const of of [{ tree, fromBlocks: false }, { tree: little }, {}]) {
      const { native, ctx } = stand(of);
      expect(await native.beforePis(event("manual"), ctx)).toBeUndefined();
    }
    const { native, ctx } = stand({ tree });
    expect(await native.beforePis(event("manual", { customInstructions: "The tests." }), ctx)).toBeUndefined();
  });

  test("is not built from blocks if it must free tokens, because they keep their length", async () => {
    const over = stand({ tree, usage: { tokens: 9_000 } });
    expect(await over.native.beforePis(event("threshold"), over.ctx)).toBeUndefined();
    const overflow = stand({ tree, usage: { tokens: 5_000 } });
    expect(await overflow.native.beforePis(event("overflow"), overflow.ctx)).toBeUndefined();
    const unguarded = stand({ tree, usage: { tokens: 5_000 }, guard: false });
    expect(await unguarded.native.beforePis(event("threshold"), unguarded.ctx)).toHaveProperty("compaction");
  });

  test("summarises the visible context if blocks hide more than its model can accept", async () => {
    const { native, ctx, asked } = stand({ tree, fromBlocks: false, window: 6_000, answer: "Short." });
    expect(await native.beforePis(event("manual", { customInstructions: "The tests." }), ctx)).toMatchObject({
      compaction: {
        summary: "Short.",
        firstKeptEntryId: "u3",
        usage: { totalTokens: 5 },
        details: { "pi-rpcd": { from: "rendered", blocks: ["b1", "b2"] } },
      },
    });
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain("Body of b1.");
    expect(asked[0]).toContain("The user wants of it: The tests.");
    expect(asked[0]).not.toContain("t1");
  });

  test("keeps a block whole that pi would have cut through", async () => {
    const { native, ctx } = stand({ tree, fromBlocks: false, window: 5_000, answer: "Short." });
    const preparation = { tokensBefore: 8_000, firstKeptEntryId: "a2", settings: { reserveTokens: 2_000 } };
    const through = event("manual", { preparation: unchecked(preparation) });
    expect(await native.beforePis(through, ctx)).toMatchObject({ compaction: { firstKeptEntryId: "u2" } });
  });

  test("never gives the summariser more than its window, also if it fails", async () => {
    const of = { tree, fromBlocks: false, window: 4_500, answer: new Error("overloaded") };
    const { native, ctx } = stand(of);
    expect(await native.beforePis(event("threshold"), ctx)).toEqual({ cancel: true });
    const made = await native.beforePis(event("overflow"), ctx);
    // Blocks are already summaries: they stay, in order, and are named.
    expect(made?.compaction?.summary).toMatch(
      /recall b1 (?:.|\n)*Body of b1\.(?:.|\n)*recall b2 (?:.|\n)*Body of b2\./,
    );
    expect(made?.compaction?.summary.length).toBeLessThan(4_500);
    const wide = stand({ ...of, window: 6_000 });
    expect(await wide.native.beforePis(event("overflow"), wide.ctx)).toBeUndefined();
  });

  test("is not paid for again before each request if its summary failed, and the cost is accounted for", async () => {
    const of = { tree, fromBlocks: false, window: 4_500, answer: "Too long.", stopReason: "length" };
    const { native, ctx, asked, allowed, branch } = stand({ ...of, usage: { tokens: 4_000 } });
    const turn = async (): Promise<void> => {
      branch.call("read", {}, "Text.");
      expect(await native.beforePis(event("threshold"), ctx)).toEqual({ cancel: true });
    };
    await turn();
    expect(asked).toHaveLength(1);
    // It leaves space for the text to summarise.
    expect(allowed).toEqual([1_000]);
    const marks = branch.entries.flatMap((entry) => (entry.type === "custom" ? [[entry.customType, entry.data]] : []));
    expect(marks).toMatchObject([
      ["pi-rpcd.compaction", { v: 1, kind: "failed" }],
      ["pi-rpcd.cost", { kind: "failedSummary", usage: { totalTokens: 5 }, model: "test/model" }],
    ]);
    await turn();
    await turn();
    expect(asked).toHaveLength(1);
    await turn();
    expect(asked).toHaveLength(2);
    // A necessary one is tried at any time.
    await native.beforePis(event("overflow"), ctx);
    expect(asked).toHaveLength(3);
    branch.compact("e1");
    expect(await native.beforePis(event("threshold"), ctx)).toEqual({ cancel: true });
    expect(asked).toHaveLength(4);
  });

  test("is not built from the remaining text if the user requests one and a provider fails", async () => {
    const of = { tree, fromBlocks: false, window: 4_500 };
    const { native, ctx, shown } = stand({ ...of, answer: new Error("overloaded") });
    expect(await native.beforePis(event("manual"), ctx)).toEqual({ cancel: true });
    expect(shown).toEqual(["Not compacted: no summary could be made. overloaded"]);
    // If it does not fit, nothing will change that later.
    const small = stand({ ...of, window: 100, answer: "Short." });
    expect(await small.native.beforePis(event("manual"), small.ctx)).toHaveProperty("compaction");
    expect([small.asked, small.shown]).toEqual([[], []]);
  });

  test("has the text of long blocks within its share if no model can be asked, and part of the rest", async () => {
    const long = { ...block("b1", "u1", "a1", "t1"), body: [{ text: "word ".repeat(5_000) }] };
    const other = treeOf(long, block("b2", "u2"));
    const { native, ctx } = stand({ tree: other, fromBlocks: false, window: 4_500, answer: new Error("overloaded") });
    const summary = (await native.beforePis(event("overflow"), ctx))?.compaction?.summary ?? "";
    // A quarter of the window, and a quarter of that for the rest.
    expect(summary.length).toBeLessThan(4_500 * 0.25 * 1.25 * 3.3 + 500);
    expect(summary).toContain("recall b1 gives all of it");
    expect(summary).toContain("[shortened; recall b1]");
    expect(summary).toContain("[Assistant] a2");
  });

  test("leaves a summary at most a quarter of a small window", async () => {
    const { native, ctx, allowed } = stand({ tree, fromBlocks: false, window: 3_600, answer: "Short." });
    await native.beforePis(event("manual"), ctx);
    expect(allowed).toEqual([900]);
  });
});
