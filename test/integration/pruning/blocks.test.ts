import { expect, test } from "vitest";
import {
  commonMessages,
  messagesOf,
  type PayloadMessage,
  withoutCompressing,
} from "../../../bench/lib/pruning/payload.ts";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, hang, type ToolCall } from "../../../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "../optimisation/model.ts";

const emit = (name: string) => call("emit", { text: `line of ${name}\n`, times: 100 }, `call_${name}`);
const compress = (startId: string, endId: string, summary: string) =>
  call("compress", { topic: `Topic of ${endId}`, ranges: [{ startId, endId, summary }] });

const pruning: PruningOptions = {
  enabled: true,
  protectRecentTurns: 1,
  compress: { minRangeTokens: 0 },
  nudges: { maxFailures: 100 },
  nativeCompaction: { fromBlocks: false },
};

interface Led {
  readonly model: Model;
  /** Of the run with three levels of blocks. */
  readonly nested: readonly LogEntry[];
  /** The request after a compression in which pi died, and the first one after that. */
  readonly dying: LogEntry | undefined;
  readonly revived: LogEntry | undefined;
  /** When all blocks are decompressed. */
  readonly whole: LogEntry | undefined;
}

/** Three levels of blocks, a fourth block, a death of pi, and then decompression of all. */
async function lead(pi: Pi, provider: ScriptedProvider): Promise<Led> {
  const model = new Model(pi, provider);
  await model.run(emit("first"), emit("second"));
  await model.run(emit("third"), emit("fourth"));
  const nested = await model.run(
    emit("fifth"),
    compress("m001", "m002", "First words, and the user's own: \\(b9)."),
    emit("sixth"),
    compress("b1", "m003", "Before: (b1) Second words."),
    emit("seventh"),
    compress("b2", "m006", "(b2)\nThird words."),
  );
  const dying = await died(pi, provider, compress("m007", "m008", "Fourth words."));
  const [revived] = await model.run(emit("last"));
  for (const id of ["b3", "b2", "b1", "b4"]) await pi.rpc({ type: "prompt", message: `/dcp decompress ${id}` });
  const whole = (await model.run()).at(-1);
  return { model, nested, dying, revived, whole };
}

/** pi dies in the request after the result of this call. */
async function died(pi: Pi, provider: ScriptedProvider, last: ToolCall): Promise<LogEntry | undefined> {
  const asked = Promise.withResolvers<LogEntry>();
  provider.add(answer(last), (request) => {
    asked.resolve(request);
    return hang();
  });
  await pi.rpc({ type: "prompt", message: "Go on." });
  const request = await asked.promise;
  await pi.revive();
  return request;
}

/** The texts that the tool recall returned, as stored in the file. */
function recalled(pi: Pi): readonly (string | undefined)[] {
  const results = entriesOf(pi).flatMap(({ message }) => (message?.role === "toolResult" ? [message] : []));
  return results.slice(-2).map(({ content }) => content[0]?.text);
}

function texts(messages: readonly PayloadMessage[]): string {
  return JSON.stringify(messages);
}

/** Whether the later request begins with the earlier one. */
function isContinued(before: LogEntry, after: LogEntry): boolean {
  const [earlier, later] = [messagesOf(before), messagesOf(after)];
  return commonMessages(earlier, later) === earlier.length;
}

test("compressing and decompressing three levels gives the payload of a twin run without blocks (R002-11), and no kill, fork or compaction loses one (R002-14)", async () => {
  await using provider = await startProvider();
  const settings = { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 } };
  await using pi = await startPi({ provider, pruning, settings, api: "scripted-anthropic", after: ["emitting"] });
  const { model, nested, dying, revived, whole } = await lead(pi, provider);

  // Each text occurs once, and earlier requests are the beginning of later ones except after a compression.
  const last = messagesOf(nested.at(-1) as LogEntry);
  for (const words of ["First words", "Second words", "Third words"]) expect(texts(last).split(words)).toHaveLength(2);
  expect(texts(last)).toContain("Before: First words, and the user's own: (b9). Second words.\\nThird words.");
  expect(texts(last).split("[Compressed conversation section]")).toHaveLength(2);
  expect(texts(last)).not.toContain("line of fourth");
  const pairs = nested.slice(1).map((request, at) => isContinued(nested[at] as LogEntry, request));
  expect(pairs).toEqual([true, false, true, false, true, false]);

  // pi died after the result of a compression.
  expect(texts(messagesOf(dying as LogEntry))).toContain("Fourth words.");
  expect(isContinued(dying as LogEntry, revived as LogEntry)).toBe(true);

  const blocks = entriesOf(pi).flatMap(
    ({ message }) => (message?.details as { blocks?: { id: string }[] })?.blocks ?? [],
  );
  expect(blocks.map(({ id }) => id)).toEqual(["b1", "b2", "b3", "b4"]);
  const words = "Before: First words, and the user's own: (b9). Second words.\nThird words.";
  await model.calls(call("recall", { id: "b3" }), call("recall", { id: "b1" }));
  expect(recalled(pi)).toEqual([words, "First words, and the user's own: (b9)."]);

  // State saved at the end of a run would be lost after a crash or a fork: this is on the branch.
  await pi.rpc({ type: "prompt", message: "/dcp recompress b3" });
  await model.run();
  const asked = entriesOf(pi).findLast(({ message }) => message?.role === "user");
  await pi.rpc({ type: "fork", entryId: asked?.id });
  const forked = messagesOf((await model.run()).at(-1) as LogEntry);
  expect(texts(forked).split("[Compressed conversation section]")).toHaveLength(2);
  expect(texts(forked)).not.toContain("line of fourth");

  // A block whose messages were compacted is recalled, and not restored.
  provider.add(answer("A summary."));
  await pi.rpc({ type: "compact" });
  await pi.rpc({ type: "prompt", message: "/dcp decompress b3" });
  const [again] = await model.calls(call("recall", { id: "b3" }));
  expect(again?.startsWith(words)).toBe(true);
  expect(texts(messagesOf(provider.requests.at(-1) as LogEntry))).not.toContain("line of fourth");

  await using other = await startProvider();
  await using twin = await startPi({
    provider: other,
    settings,
    pruning: { ...pruning, compress: { ...pruning.compress, permission: "deny" } },
    api: "scripted-anthropic",
    after: ["emitting"],
  });
  const { whole: original } = await lead(twin, other);
  const [messages, originals] = [whole, original].map((request) =>
    withoutCompressing(messagesOf(request as LogEntry)).map((message) => JSON.stringify(message)),
  );
  expect(originals?.length).toBeGreaterThan(20);
  expect(messages?.length).toBe(originals?.length);
  const differs = messages?.findIndex((message, at) => message !== originals?.[at]) ?? 0;
  expect(messages?.[differs]).toBe(originals?.[differs]);
});
