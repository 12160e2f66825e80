import { expect, test } from "vitest";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import { Gate } from "../../../provider/gate.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, hold, type Reply } from "../../../provider/reply.ts";
import { when } from "../../../provider/script.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "../optimisation/model.ts";

/** pi compacts above 18,000 tokens. */
const models = [{ id: "model-1", contextWindow: 24_000, maxTokens: 1_000 }];
const settings = { compaction: { enabled: true, reserveTokens: 6_000, keepRecentTokens: 500 } };
const pruning: PruningOptions = {
  enabled: true,
  debug: true,
  protectRecentTurns: 1,
  compress: { minRangeTokens: 0 },
  strategies: { deduplication: { enabled: false }, purgeErrors: { enabled: false } },
};
/** An output of 6,600 tokens, which is not in the arguments of its call. */
const print = (letter: string) => call("emit", { text: `${letter.repeat(7)} `, times: 3_300 });
const isSummary = ({ toolNames }: LogEntry): boolean => toolNames.length === 0;
const many = (request: LogEntry | undefined, letter: string): boolean =>
  (request?.countText(letter.repeat(7)) ?? 0) > 100;

interface Change {
  readonly blocks: readonly string[];
}

function changes(pi: Pi, cause: string): readonly Change[] {
  return pi
    .frames("notice")
    .flatMap((notice) => (notice.name === "pruning/changed" && notice.data.cause === cause ? [notice.data] : []));
}

async function ask(pi: Pi, about: string, params: object = {}): Promise<Readonly<Record<string, unknown>>> {
  return await pi.send({ kind: "ask", about, params });
}

/** A run at one of whose boundaries an output is removed: pi then counts characters. */
async function sweep(pi: Pi, provider: ScriptedProvider, ...before: readonly Reply[]): Promise<void> {
  const gate = new Gate();
  provider.add(
    ...before,
    answer("And now.", hold(gate), call("emit", { text: "short and nothing else ", times: 60 })),
    answer("Done."),
  );
  pi.log.forget("hello");
  await pi.rpc({ type: "prompt", message: "Go on." });
  await gate.reached;
  expect(await ask(pi, "pruning/sweep", { last: 1, wait: true })).toMatchObject({ state: "waiting" });
  gate.open();
  await pi.settled();
}

/**
 * A session in which blocks hide 13,000 tokens, and a run at one of whose boundaries an output is removed, so that pi
 * counts the characters of everything.
 */
async function lead(
  provider: ScriptedProvider,
  nativeCompaction: NonNullable<PruningOptions["nativeCompaction"]>,
): Promise<Pi> {
  const pi = await startPi({
    provider,
    models,
    settings,
    after: ["emitting"],
    pruning: { ...pruning, nativeCompaction },
  });
  const model = new Model(pi, provider);
  await model.run(print("a"), print("b"));
  await model.run();
  const ranges = [{ startId: "m001", endId: "m003", summary: "A and b were printed." }];
  expect(await ask(pi, "pruning/compress", { topic: "Printing", ranges })).toMatchObject({ state: "done" });
  await sweep(pi, provider, answer(print("c")));
  return pi;
}

test("pi's compaction is cancelled if blocks have made it unnecessary, and built from them if the user requests one (R002-27)", async () => {
  await using provider = await startProvider();
  await using pi = await lead(provider, {});
  // It was attempted once because of the edit, and cancelled.
  expect(pi.log.records.filter(({ type }) => type === "compaction_start")).toHaveLength(1);
  expect(pi.log.records.find(({ type }) => type === "compaction_end")).toMatchObject({ aborted: true });
  expect(provider.requests.some(isSummary)).toBe(false);
  expect(entriesOf(pi).some(({ type }) => type === "compaction")).toBe(false);
  expect(pi.frames("debug").map(({ facts }) => facts)).toContainEqual(
    expect.objectContaining({ compaction: "threshold", decided: "called off" }),
  );

  pi.log.forget("hello");
  await pi.rpc({ type: "compact" });
  expect(provider.requests.some(isSummary)).toBe(false);
  const made = entriesOf(pi).find(({ type }) => type === "compaction") as unknown as Readonly<Record<string, unknown>>;
  expect(made).toMatchObject({ details: { "pi-rpcd": { v: 1, from: "blocks", blocks: ["b1"] } } });
  expect(made["summary"]).toContain("A and b were printed.");
  expect(changes(pi, "compaction")).toMatchObject([{ blocks: ["b1"] }]);

  const model = new Model(pi, provider);
  const [request] = await model.run();
  expect(request?.countText("A and b were printed.")).toBe(1);
  expect([many(request, "a"), many(request, "b"), many(request, "c")]).toEqual([false, false, true]);
  // It is permanently out of the context, and can be read.
  expect(await model.recall("b1")).toContain("A and b were printed.");
  expect(await ask(pi, "pruning/decompress", { block: "b1" })).toMatchObject({
    refused: "block_not_restorable",
    message: "b1 has left the context with a compaction.",
  });
});

test("a summariser never gets hidden text that exceeds a window (R002-27)", async () => {
  await using provider = await startProvider();
  provider.add(when(isSummary, answer("## Goal\nTo print.")));
  await using pi = await lead(provider, { guard: false, fromBlocks: false });
  const summaries = provider.requests.filter(isSummary);
  expect(summaries).toHaveLength(1);
  expect(summaries[0]?.hasText("A and b were printed.")).toBe(true);
  expect([many(summaries[0], "a"), many(summaries[0], "b")]).toEqual([false, false]);
  const made = entriesOf(pi).filter(({ type }) => type === "compaction");
  expect(made).toMatchObject([{ summary: "## Goal\nTo print.", details: { "pi-rpcd": { from: "rendered" } } }]);
  expect(provider.requests.at(-1)?.hasText("To print.")).toBe(true);
});

test("a failed summary is requested once, is accounted for, and changes nothing (R002-27)", async () => {
  await using provider = await startProvider();
  provider.add(when(isSummary, { ...answer("Too long."), stop: "length" }));
  await using pi = await lead(provider, { guard: false, fromBlocks: false });
  const requested = () => provider.requests.filter(isSummary).length;
  const written = (type: string) => entriesOf(pi).filter(({ customType }) => customType === type).length;
  expect([requested(), written("pi-rpcd.compaction"), written("pi-rpcd.cost")]).toEqual([1, 1, 1]);
  // pi wants one again, and the summary is not requested.
  await sweep(pi, provider);
  expect(pi.log.records.some(({ type }) => type === "compaction_start")).toBe(true);
  expect(requested()).toBe(1);
  expect(entriesOf(pi).some(({ type }) => type === "compaction")).toBe(false);
  expect([provider.requests.at(-1)?.countText("A and b were printed."), many(provider.requests.at(-1), "c")]).toEqual([
    1,
    true,
  ]);
});
