import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import { blockNewsOf } from "../../../../../context/pruning/block-entries.ts";
import { BlockLedger } from "../../../../../context/pruning/block-ledger.ts";
import { createCompressor } from "../../../../../context/pruning/compress/compressor.ts";
import { compressTool } from "../../../../../context/pruning/compress/tool.ts";
import type { PruningServices, Usage } from "../../../../../context/pruning/pruning-services.ts";
import type { BlocksRecord } from "../../../../../context/pruning/record.ts";
import { defaultPruning, type PruningConfig } from "../../../../../protocol/pruning/config.ts";
import type { PruningOptions } from "../../../../../protocol/pruning/options.ts";
import { resolvePruning } from "../../../../../protocol/pruning/resolve.ts";
import { unchecked } from "../../../../helpers/partial.ts";

const outputs = ["# Notes", "One.", "Two."];
const messages = [
  { role: "user", content: "Look into it." },
  ...outputs.flatMap((text, at) => [
    {
      role: "assistant",
      content: [
        { type: "toolCall", id: `c${at}`, name: at === 0 ? "read" : "bash", arguments: { path: `docs/${at}.md` } },
      ],
    },
    {
      role: "toolResult",
      toolCallId: `c${at}`,
      toolName: at === 0 ? "read" : "bash",
      content: [{ type: "text", text }],
    },
  ]),
  { role: "assistant", content: [{ type: "toolCall", id: "own", name: "compress", arguments: {} }] },
];
const entries = messages.map((message, at) => ({ sourceEntry: { id: `e${at}` }, messages: [message] }));
const ctx = {
  cwd: "/project",
  hasUI: false,
  sessionManager: { buildSessionProjection: () => ({ entries }) },
} as unknown as ExtensionContext;

/** e0 m001, e2 m002, e4 m003, e6 m004: each message has 1,000 tokens, and b1 covers m002 if there are blocks. */
function staged(
  options: PruningOptions = {},
  more: { readonly usage?: Usage; readonly hasBlock?: boolean; readonly isTaken?: boolean } = {},
) {
  const config: PruningConfig = resolvePruning({ protectRecentTurns: 1, ...options });
  const ledger = new BlockLedger();
  for (const { sourceEntry } of entries) ledger.passed(sourceEntry.id);
  if (more.hasBlock === true) {
    const block = { id: "b1", firstEntryId: "e1", lastEntryId: "e2", entryIds: ["e1", "e2"], children: [], kept: [] };
    const sizes = { tokensBefore: 2_000, tokensAfter: 100 };
    ledger.made({ v: 1, topic: "Notes", blocks: [{ ...block, ...sizes, body: [{ text: "Notes." }] }] }, "r1", "c0");
  }
  const tagged = ["e0", "e2", "e4", "e6"];
  const host = {
    pruning: () => config,
    off: () => undefined,
    breaker: () => undefined,
    context: () => ctx,
    usage: () => more.usage,
    isUnanswered: () => false,
    estimator: { message: () => 1_000, text: (text: string) => text.length },
    ids: {
      idOf: (id: string) => (tagged.includes(id) ? `m00${tagged.indexOf(id) + 1}` : undefined),
      entryOf: (id: string) => tagged[Number(id.slice(1)) - 1],
      newest: () => "m004",
    },
    blocks: {
      on: () => ledger.tree(),
      ahead: () => ledger.tree(),
      takes: (record: BlocksRecord) => more.isTaken !== false && blockNewsOf(record) !== undefined,
      nextId: (_ctx: unknown, ahead = 0) => `b${2 + ahead}`,
    },
  } as unknown as PruningServices;
  const compressor = createCompressor(host);
  const compress = (startId: string, endId: string, summary = "Found.", callId: string | undefined = "own") =>
    compressor.compress(
      { topic: "Looking", ranges: [{ startId, endId, summary }] },
      { placeholders: "strict", ...(callId === undefined ? {} : { callId }) },
      ctx,
    );
  return { host, compressor, compress };
}

type Compressed = ReturnType<ReturnType<typeof staged>["compress"]>;
const problems = (compressed: Compressed) => (compressed.kind === "refused" ? compressed.problems : []);
const keptIn = (compressed: Compressed) =>
  compressed.kind === "made" ? compressed.record.blocks.flatMap(({ kept }) => kept) : [];

test("the record of a block says what it covers, and each option of the tool changes the result of a call", () => {
  const made = staged().compress("m001", "m003");
  expect(made).toMatchObject({
    kind: "made",
    hidden: ["m001", "m002", "m003"],
    record: {
      v: 1,
      topic: "Looking",
      blocks: [{ id: "b2", firstEntryId: "e0", lastEntryId: "e4", entryIds: ["e0", "e1", "e2", "e3", "e4"], kept: [] }],
    },
  });

  const { minRangeTokens, minSavings } = defaultPruning.compress;
  expect(minRangeTokens).toBe(1_000);
  expect(problems(staged().compress("m001", "m001"))).toEqual([]);
  expect(problems(staged({ compress: { minRangeTokens: 1_001 } }).compress("m001", "m001"))).toEqual([
    "m001 is about 1000 tokens; the minimum is 1001.",
  ]);
  // A user may compress small ranges.
  const user = staged({ compress: { minRangeTokens: 1_001 } }).compressor;
  const call = { topic: "Looking", ranges: [{ startId: "m001", endId: "m001", summary: "Found." }] };
  expect(user.compress(call, { placeholders: "strict" }, ctx).kind).toBe("made");

  expect(minSavings).toBe(0.2);
  const long = "x".repeat(700);
  expect(problems(staged().compress("m001", "m001", long))).toEqual([
    expect.stringMatching(/^The summary \(\d+ tokens\) is not smaller than 80 % of the range \(1000\)\.$/u),
  ]);
  expect(problems(staged({ compress: { minSavings: 0 } }).compress("m001", "m001", long))).toEqual([]);

  expect(problems(staged({ protectRecentTurns: 2 }).compress("m001", "m004"))).toEqual([
    "m004 belongs to the 2 most recent turns and stays raw.",
  ]);

  expect(keptIn(staged({ compress: { protectUserMessages: true } }).compress("m001", "m003"))).toEqual([
    { title: "The user (m001):", text: "Look into it." },
  ]);
  expect(keptIn(staged({ compress: { protectedTools: ["ba*"] } }).compress("m001", "m003"))).toEqual([
    { title: "Output of bash docs/1.md (m003):", text: "One." },
  ]);
  expect(keptIn(staged({ protectedFilePatterns: ["docs/0.*"] }).compress("m001", "m003"))).toEqual([
    { title: "Output of read docs/0.md (m002):", text: "# Notes" },
  ]);
});

test("a summary loses the tags that it repeats, and keeps unknown ones", () => {
  const made = staged().compress(
    "m001",
    "m003",
    "As <dcp-message-id>m002</dcp-message-id>said, not <dcp-message-id>m777</dcp-message-id>.",
  );
  expect(made.kind === "made" && made.record.blocks[0]?.body).toEqual([
    { text: "As said, not <dcp-message-id>m777</dcp-message-id>." },
  ]);
});

test("a summary of nothing but repeated tags is empty, and is not reported as stored", () => {
  const tag = "<dcp-message-id>m002</dcp-message-id>";
  expect(problems(staged().compress("m001", "m003", `${tag} `))).toEqual(["summary of ranges[0] is empty."]);
  const ranges = [{ startId: "m001", endId: "m003", summary: tag }];
  const { compressor } = staged();
  for (const callId of ["own", undefined]) {
    const asker = { placeholders: "strict" as const, ...(callId === undefined ? {} : { callId }) };
    expect(problems(compressor.compress({ topic: tag, ranges }, asker, ctx))).toEqual([
      "topic is empty.",
      "summary of ranges[0] is empty.",
    ]);
  }
});

test("a block that the branch would not accept is refused", () => {
  const refused = staged({}, { isTaken: false }).compress("m001", "m003");
  expect(refused).toMatchObject({ kind: "refused", problems: [expect.stringContaining("has just changed blocks")] });
});

test("wrong placeholders are refused, corrected, or refused once in a run and then corrected", async () => {
  const outcomes = async (mode: "strict" | "lenient" | "adaptive"): Promise<readonly string[]> => {
    const { host, compressor } = staged({ compress: { placeholderMode: mode } }, { hasBlock: true });
    let isKnown = false;
    const tool = compressTool({
      host,
      compressor,
      made: () => {},
      wrongPlaceholders: {
        isKnown: () => isKnown,
        seen: () => {
          isKnown = true;
        },
      },
      description: "Compresses.",
    });
    const ranges = [{ startId: "m001", endId: "m003", summary: "Found." }];
    const one = async (): Promise<string> => {
      const args = tool.prepareArguments?.({ topic: "Looking", ranges });
      try {
        const { details } = await tool.execute("own", unchecked(args), undefined, undefined, ctx);
        return details.blocks.map(({ body }) => JSON.stringify(body.at(-1))).join("");
      } catch (thrown) {
        return String(thrown).split("\n")[0] ?? "";
      }
    };
    return [await one(), await one()];
  };
  const refused = "Error: The summary must contain (b1) once; the range contains b1.";
  expect(await outcomes("strict")).toEqual([refused, refused]);
  expect(await outcomes("lenient")).toEqual(['{"block":"b1"}', '{"block":"b1"}']);
  expect(await outcomes("adaptive")).toEqual([refused, '{"block":"b1"}']);
});

test("scripts cannot call the tool: their calls leave no results that could store blocks", () => {
  const { host, compressor } = staged();
  const wrongPlaceholders = { isKnown: () => false, seen: () => {} };
  const tool = compressTool({ host, compressor, made: () => {}, wrongPlaceholders, description: "Compresses." });
  expect(tool.exposure).toBe("model-only");
});

test("a call's result says how full the window is, and a dialog that no client can answer counts as a no", async () => {
  const usage: Usage = { tokens: 100_000, window: 200_000, share: 0.5, max: 0.8, min: 0.4 };
  const run = async (permission: "allow" | "ask"): Promise<string> => {
    const { host, compressor } = staged({ compress: { permission } }, { usage });
    const wrongPlaceholders = { isKnown: () => false, seen: () => {} };
    const tool = compressTool({ host, compressor, made: () => {}, wrongPlaceholders, description: "Compresses." });
    const args = { topic: "Looking", ranges: [{ startId: "m001", endId: "m003", summary: "x".repeat(900) }] };
    const { content } = await tool.execute("own", unchecked(args), undefined, undefined, ctx);
    return content.map((part) => (part.type === "text" ? part.text : "")).join("");
  };
  const lines = (await run("allow")).split("\n");
  expect(lines[0]).toMatch(/^b2 stands for m001–m003: about 5000 tokens before, 1\d{3} now\.$/u);
  expect(lines[1]).toMatch(/^The context is now about 96\d{3} of 200000 tokens \(48 %\)\.$/u);
  await expect(run("ask")).rejects.toThrow("The user has not allowed this compression; continue with the task.");
});
