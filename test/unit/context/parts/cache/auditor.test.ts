import { expect, test } from "vitest";
import type { AuditMemory } from "../../../../../context/parts/cache/auditor.ts";
import { AuditBench, read } from "./audit-bench.ts";

const first = { role: "user", content: "Read it." };
const call = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "t1", function: { name: "read", arguments: "{}" } }],
};
const result = { role: "tool", tool_call_id: "t1", content: "A file." };

function warmBench(): AuditBench {
  const bench = new AuditBench();
  bench.branch.prompt();
  expect(bench.request({ messages: [first] })).toEqual([]);
  return bench;
}

test("an edit of a part is put down to it, however long ago it was proposed, and the next one to whoever made it", () => {
  const bench = warmBench();
  bench.branch.call();
  const target = bench.branch.append("message", { message: { role: "toolResult", content: [], timestamp: 2 } });
  expect(bench.request({ messages: [first, call, result] })).toEqual([]);
  bench.changes.add("masking", [target]);
  bench.branch.append("context_edit", { targetId: target, replacement: { content: "Masked." } });
  const masked = [first, call, { ...result, content: "Masked." }];
  expect(bench.request({ messages: masked, usage: read(2_048) })).toEqual(["edit:masking"]);
  expect(bench.broken[0]).toMatchObject({
    position: "message 3",
    predictedTokens: 19_968,
    readTokens: 2_048,
    missedTokens: 17_920,
  });
  expect(bench.broken[0]?.missedUsd).toBeCloseTo((17_920 * 3.45) / 1_000_000, 9);
  expect(bench.memory.audit?.ledger.lost("edit:masking").tokens).toBe(17_920);
  bench.branch.append("context_edit", { targetId: target, replacement: { content: "Edited." } });
  const edited = [first, call, { ...result, content: "Edited." }];
  expect(bench.request({ messages: edited, usage: read(2_048) })).toEqual(["edit:foreign"]);
});

test("what a part changes in requests alone is put down to it by the command whose output it is", () => {
  const bench = warmBench();
  const bash = bench.branch.append("message", { message: { role: "bashExecution", output: "x", timestamp: 2 } });
  expect(bench.request({ messages: [first, { role: "user", content: "Ran ls: x" }] })).toEqual([]);
  bench.changes.add("masking", [bash]);
  const masked = [first, { role: "user", content: "Ran ls." }];
  expect(bench.request({ messages: masked, usage: read(0) })).toEqual(["edit:masking"]);
});

test("the earliest of several edits decides, and one of a message that was in no request is none", () => {
  const bench = warmBench();
  const ours = bench.branch.prompt();
  const theirs = bench.branch.prompt();
  expect(bench.request({ messages: [first, result] })).toEqual([]);
  const failed = bench.branch.answer({ stopReason: "error" });
  bench.changes.add("masking", [ours]);
  for (const targetId of [failed, theirs, ours]) bench.branch.append("context_edit", { targetId, replacement: null });
  expect(bench.request({ messages: [first, call], usage: read(0) })).toEqual(["edit:masking"]);
});

test("a request that failed is no request to compare with", () => {
  const bench = warmBench();
  expect(bench.request({ messages: [{ ...first, content: "Lost." }], usage: read(0, 0) })).toEqual([]);
  expect(bench.request({ messages: [first, call, result] })).toEqual([]);
  expect(bench.memory.audit?.ledger.report().requests).toBe(2);
});

test("losses up to the noise are not told, and those of a service that never spoke of a cache neither", () => {
  const bench = warmBench();
  expect(bench.request({ usage: read(19_968 - 1_024), messages: [{ ...first, content: "Other." }] })).toEqual([]);
  bench.noiseTokens = 1_023;
  expect(bench.request({ usage: read(19_968 - 1_024), messages: [first] })).toEqual(["edit:foreign"]);
  const silent = new AuditBench();
  silent.branch.prompt();
  expect(silent.request({ usage: read(0) })).toEqual([]);
  expect(silent.request({ usage: read(0) })).toEqual([]);
  expect(silent.memory.audit?.ledger.report().hitRate).toBeNull();
});

test("a prompt that is too short to be kept is no loss where the service says what it wrote", () => {
  const bench = new AuditBench();
  bench.noiseTokens = 0;
  bench.branch.prompt();
  const block = { type: "text", text: "Go.", cache_control: { type: "ephemeral" } };
  const marked = { max_tokens: 100, system: "Be brief.", messages: [{ role: "user", content: [block] }] };
  expect(bench.request({ payload: marked, usage: read(0, 900, 3_000) })).toEqual([]);
  expect(bench.request({ payload: marked, usage: read(0, 3_900, 0) })).toEqual(["service"]);
  expect(bench.request({ payload: marked, usage: read(0, 3_900, 0) })).toEqual([]);
});

test("what keeps a cache warm is no request, and puts off its end", () => {
  const bench = warmBench();
  const ctx = bench.branch.context();
  const audit = bench.memory.audit as AuditMemory;
  audit.usedAt = Date.now() - 301_000;
  bench.auditor.sent({ ...bench.payload({ messages: [first] }), max_tokens: 1 }, ctx);
  expect(audit.usedAt).toBeGreaterThan(Date.now() - 10_000);
  expect(bench.request({ messages: [first], usage: read(0) })).toEqual(["service"]);
  audit.usedAt = Date.now() - 301_000;
  expect(bench.request({ messages: [first], usage: read(0) })).toEqual(["expired"]);
  expect(audit.ledger.report().requests).toBe(3);
});

test("one that comes beside a request, before or behind its payload, is not taken for it", () => {
  const bench = warmBench();
  const ctx = bench.branch.context();
  const warm = { ...bench.payload({ messages: [first] }), max_tokens: 1 };
  bench.auditor.listed([], ctx);
  bench.auditor.sent(warm, ctx);
  bench.auditor.sent(bench.payload({ messages: [first, call, result] }), ctx);
  bench.auditor.sent({ ...bench.payload({ messages: [first, call, result] }), max_tokens: 1 }, ctx);
  bench.answer(read(19_968));
  expect(bench.request({ messages: [first, call], usage: read(0) })).toEqual(["edit:foreign"]);
});

test("behind a start of pi only a pause that was too long is told", () => {
  for (const [ago, causes] of [
    [10_000, []],
    [301_000, ["expired"]],
  ] as const) {
    const bench = new AuditBench();
    bench.branch.prompt();
    bench.branch.answer({}, Date.now() - ago);
    bench.branch.prompt();
    expect(bench.request({ usage: read(0) })).toEqual(causes);
    expect(bench.request({ usage: read(19_968) })).toEqual([]);
  }
});

test("behind a reload of the extensions a request is still held against the one before", () => {
  const bench = warmBench();
  bench.auditor = bench.begin();
  expect(bench.request({ sections: { rules: "Other." }, messages: [first], usage: read(0) })).toEqual([
    "section:rules",
  ]);
});

test("another session begins anew", () => {
  const bench = warmBench();
  expect(bench.memory.audit?.ledger.report().requests).toBe(1);
  (bench.memory.audit as { sessionId: string }).sessionId = "another";
  expect(bench.request({ sections: { rules: "Other." }, usage: read(0) })).toEqual([]);
  expect(bench.memory.audit?.ledger.report().requests).toBe(1);
});

test("how the model is to think is the model's cause", () => {
  const bench = warmBench();
  const payload = { ...bench.payload({ messages: [first] }), reasoning_effort: "high" };
  expect(bench.request({ payload, usage: read(0) })).toEqual(["model"]);
  expect(bench.broken.at(-1)?.position).toBe("settings");
});

test("a section is told of where it varies at once or twice in a row, and not where it changes once", () => {
  const bench = warmBench();
  bench.request({ sections: { rules: "Be brief." }, messages: [first] });
  for (const rules of ["One.", "One.", "Two.", "Three."]) bench.request({ sections: { rules }, messages: [first] });
  expect(bench.varying).toEqual(["rules"]);
  const early = warmBench();
  early.request({ sections: { rules: "One." }, messages: [first] });
  expect(early.varying).toEqual(["rules"]);
});

test("text that passes is no part of what the next request is held against", () => {
  const bench = new AuditBench();
  bench.branch.prompt();
  const nudge = { role: "user", content: "Compress the context soon." };
  bench.changes.passing(nudge.content);
  expect(bench.request({ messages: [first, nudge] })).toEqual([]);
  expect(bench.request({ messages: [first, call, result] })).toEqual([]);
  expect(bench.request({ messages: [first, call, result], usage: read(0) })).toEqual(["service"]);
});

test("what an extension calls its sections is told without what no line has, and in bounds", () => {
  const bench = warmBench();
  const name = `a\nb${"c".repeat(300)}`;
  bench.request({ sections: { [name]: "Be brief." }, messages: [first] });
  expect(bench.request({ sections: { [name]: "Other." }, messages: [first], usage: read(0) })).toEqual([
    `section:a b${"c".repeat(300)}`.slice(0, 128),
  ]);
});
