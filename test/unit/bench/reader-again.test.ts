import { expect, test } from "vitest";
import { ReaderAgain } from "../../../bench/lib/traces/reader-again.ts";
import type { Trace, TraceCall, TraceTurn } from "../../../bench/lib/traces/trace.ts";
import type { LogEntry } from "../../../provider/log.ts";
import type { AnswerReply } from "../../../provider/reply.ts";

const read = (path: string, result: string): TraceCall => ({
  ...{ kind: "read", tool: "read", args: { path }, result, isError: false },
});
const calls = ["a", "b", "c", "d", "e"].map((name, at) => read(name, `${name}\n`.repeat(300 + at)));
const turn = (...made: TraceCall[]): TraceTurn => ({ text: "", calls: made, seconds: 1 });
const edit: TraceCall = { kind: "other", tool: "edit", args: { path: "b" }, result: "Done.", isError: false };
const trace: Trace = {
  name: "short",
  tools: [],
  prompts: [{ text: "", pauseSeconds: 0, turns: calls.map((one) => turn(one)) }],
};

/** A request with these texts by the ids of their calls. */
function request(texts: Readonly<Record<string, string>>, ...toolNames: string[]): LogEntry {
  const toolResults = Object.entries(texts).map(([callId, text]) => ({ callId, text, isError: false }));
  const message = { role: "user", texts: [], thinking: [], toolCalls: [], toolResults, imageCount: 0 };
  return { messages: [message], toolNames } as unknown as LogEntry;
}

const whole = Object.fromEntries(calls.map(({ args, result }) => [String(args["path"]), result]));

function readerOf(every?: number): ReaderAgain {
  const reader = new ReaderAgain(trace, every);
  for (const call of calls) reader.made(call, String(call.args["path"]));
  expect(reader.next(request(whole, "recall"), undefined)).toBeUndefined();
  return reader;
}

const asked = (reply: AnswerReply | undefined): readonly unknown[] =>
  (reply?.parts ?? []).flatMap((part) => (part.kind === "toolCall" ? [part.name, part.arguments] : []));

test("a model gets a cut file back before it edits it, and only then, by the id in its request", () => {
  const reader = readerOf();
  const cut = { ...whole, a: "a\n[… cut; recall r001 …]", b: `${"b\n".repeat(250)}[… cut; recall r002 …]` };
  expect(reader.next(request(cut, "recall"), turn(calls[0] as TraceCall))).toBeUndefined();
  expect(asked(reader.next(request(cut, "recall"), turn(edit)))).toEqual(["recall", { id: "r002" }]);
  const back = { ...cut, toolu_again_000001: calls[1]?.result ?? "" };
  expect(reader.next(request(back, "recall"), turn(edit))).toBeUndefined();
  expect(reader.counts).toEqual({ recalls: 1, repeats: 0, unlike: 0 });
});

test("a model without a recall tool, or whose request has no id, repeats the call", () => {
  const reader = readerOf();
  const { b: _, ...compacted } = whole;
  expect(asked(reader.next(request(compacted, "recall"), turn(edit)))).toEqual(["read", { path: "b" }]);
  expect(asked(reader.next(request({ ...whole, b: "[masked; recall r002]" }), turn(edit)))).toEqual([
    "read",
    { path: "b" },
  ]);
});

test("a recall that returns another text is counted, and the model does not try without end", () => {
  const reader = readerOf();
  const cut = { ...whole, b: "[masked; recall r002]" };
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    expect(asked(reader.next(request(cut, "recall"), turn(edit)))).toEqual(["recall", { id: "r002" }]);
  }
  expect(reader.next(request(cut, "recall"), turn(edit))).toBeUndefined();
  expect(reader.counts).toEqual({ recalls: 3, repeats: 0, unlike: 3 });
});

test("a model gets a share of the lost results back, once for each way in which they were lost, and never twice in a row", () => {
  const reader = readerOf(2);
  const lost = request(Object.fromEntries(calls.map(({ args }, at) => [String(args["path"]), `[x; recall r00${at}]`])));
  const replies = Array.from({ length: 8 }, () => asked(reader.next(lost, undefined)).at(-1));
  // Masked results have an even rank by size: the first, the third and the fifth.
  expect(replies).toEqual([{ path: "a" }, undefined, { path: "c" }, undefined, { path: "e" }, ...Array(3)]);
  expect(reader.next(request(whole), undefined)).toBeUndefined();
  expect(reader.next(lost, undefined)).toBeUndefined();
});
