import { expect, test } from "vitest";
import type { AuditMemory } from "../../../../../context/parts/cache/auditor.ts";
import { AuditedSession, read } from "./audited-session.ts";

const first = { role: "user", content: "Read it." };
const call = {
  role: "assistant",
  content: null,
  tool_calls: [{ id: "t1", function: { name: "read", arguments: "{}" } }],
};
const result = { role: "tool", tool_call_id: "t1", content: "A file." };

function warmSession(): AuditedSession {
  const session = new AuditedSession();
  session.branch.prompt();
  expect(session.request({ messages: [first] })).toEqual([]);
  return session;
}

test("an edit of a part is attributed to it, however long ago it was proposed, and the next one to its own author", () => {
  const session = warmSession();
  session.branch.call();
  const target = session.branch.append("message", { message: { role: "toolResult", content: [], timestamp: 2 } });
  expect(session.request({ messages: [first, call, result] })).toEqual([]);
  session.changes.add("masking", [target]);
  session.branch.append("context_edit", { targetId: target, replacement: { content: "Masked." } });
  const masked = [first, call, { ...result, content: "Masked." }];
  expect(session.request({ messages: masked, usage: read(2_048) })).toEqual(["edit:masking"]);
  expect(session.broken[0]).toMatchObject({
    position: "message 3",
    predictedTokens: 19_968,
    readTokens: 2_048,
    missedTokens: 17_920,
  });
  expect(session.broken[0]?.missedUsd).toBeCloseTo((17_920 * 3.45) / 1_000_000, 9);
  expect(session.audit.value?.ledger.report().causes["edit:masking"]?.missedTokens).toBe(17_920);
  session.branch.append("context_edit", { targetId: target, replacement: { content: "Edited." } });
  const edited = [first, call, { ...result, content: "Edited." }];
  expect(session.request({ messages: edited, usage: read(2_048) })).toEqual(["edit:foreign"]);
});

test("a change that a part makes only in requests is attributed to it by the command whose output it is", () => {
  const session = warmSession();
  const bash = session.branch.append("message", { message: { role: "bashExecution", output: "x", timestamp: 2 } });
  expect(session.request({ messages: [first, { role: "user", content: "Ran ls: x" }] })).toEqual([]);
  session.changes.add("masking", [bash]);
  const masked = [first, { role: "user", content: "Ran ls." }];
  expect(session.request({ messages: masked, usage: read(0) })).toEqual(["edit:masking"]);
});

test("the earliest of several edits decides, and an edit of a message that was in no request does not count", () => {
  const session = warmSession();
  const ours = session.branch.prompt();
  const theirs = session.branch.prompt();
  expect(session.request({ messages: [first, result] })).toEqual([]);
  const failed = session.branch.answer({ stopReason: "error" });
  session.changes.add("masking", [ours]);
  for (const targetId of [failed, theirs, ours]) session.branch.append("context_edit", { targetId, replacement: null });
  expect(session.request({ messages: [first, call], usage: read(0) })).toEqual(["edit:masking"]);
});

test("a request that failed is not used for comparison", () => {
  const session = warmSession();
  expect(session.request({ messages: [{ ...first, content: "Lost." }], usage: read(0, 0) })).toEqual([]);
  expect(session.request({ messages: [first, call, result] })).toEqual([]);
  expect(session.audit.value?.ledger.report().requests).toBe(2);
});

test("losses within the noise are not reported, nor are those of a service that never reported a cache", () => {
  const session = warmSession();
  expect(session.request({ usage: read(19_968 - 1_024), messages: [{ ...first, content: "Other." }] })).toEqual([]);
  session.noiseTokens = 1_023;
  expect(session.request({ usage: read(19_968 - 1_024), messages: [first] })).toEqual(["edit:foreign"]);
  const silent = new AuditedSession();
  silent.branch.prompt();
  expect(silent.request({ usage: read(0) })).toEqual([]);
  expect(silent.request({ usage: read(0) })).toEqual([]);
  expect(silent.audit.value?.ledger.report().hitRate).toBeNull();
});

test("a prompt that is too short to be cached is no loss if the service reports its writes", () => {
  const session = new AuditedSession();
  session.noiseTokens = 0;
  session.branch.prompt();
  const block = { type: "text", text: "Go.", cache_control: { type: "ephemeral" } };
  const marked = { max_tokens: 100, system: "Be brief.", messages: [{ role: "user", content: [block] }] };
  expect(session.request({ payload: marked, usage: read(0, 900, 3_000) })).toEqual([]);
  expect(session.request({ payload: marked, usage: read(0, 3_900, 0) })).toEqual(["service"]);
  expect(session.request({ payload: marked, usage: read(0, 3_900, 0) })).toEqual([]);
});

test("a warming request is not a request, and extends the cache's life", () => {
  const session = warmSession();
  const ctx = session.branch.context();
  const audit = session.audit.value as AuditMemory;
  audit.usedAt = Date.now() - 301_000;
  session.auditor.sent({ ...session.payload({ messages: [first] }), max_tokens: 1 }, ctx);
  expect(audit.usedAt).toBeGreaterThan(Date.now() - 10_000);
  expect(session.request({ messages: [first], usage: read(0) })).toEqual(["service"]);
  audit.usedAt = Date.now() - 301_000;
  expect(session.request({ messages: [first], usage: read(0) })).toEqual(["expired"]);
  expect(audit.ledger.report().requests).toBe(3);
});

test("a warming request concurrent with a request, before or after its payload, is not mistaken for it", () => {
  const session = warmSession();
  const ctx = session.branch.context();
  const warm = { ...session.payload({ messages: [first] }), max_tokens: 1 };
  session.auditor.listed([], ctx);
  session.auditor.sent(warm, ctx);
  session.auditor.sent(session.payload({ messages: [first, call, result] }), ctx);
  session.auditor.sent({ ...session.payload({ messages: [first, call, result] }), max_tokens: 1 }, ctx);
  session.answer(read(19_968));
  expect(session.request({ messages: [first, call], usage: read(0) })).toEqual(["edit:foreign"]);
});

test("after a start of pi only a pause that was too long is reported", () => {
  for (const [ago, causes] of [
    [10_000, []],
    [301_000, ["expired"]],
  ] as const) {
    const session = new AuditedSession();
    session.branch.prompt();
    session.branch.answer({}, Date.now() - ago);
    session.branch.prompt();
    expect(session.request({ usage: read(0) })).toEqual(causes);
    expect(session.request({ usage: read(19_968) })).toEqual([]);
  }
});

test("after a reload of the extensions a request is still compared with the one before", () => {
  const session = warmSession();
  session.auditor = session.begin();
  expect(session.request({ sections: { rules: "Other." }, messages: [first], usage: read(0) })).toEqual([
    "section:rules",
  ]);
});

test("another session starts from nothing", () => {
  const session = warmSession();
  expect(session.audit.value?.ledger.report().requests).toBe(1);
  (session.audit.value as { sessionId: string }).sessionId = "another";
  expect(session.request({ sections: { rules: "Other." }, usage: read(0) })).toEqual([]);
  expect(session.audit.value?.ledger.report().requests).toBe(1);
});

test("a change of the thinking level is reported with the model's cause", () => {
  const session = warmSession();
  const payload = { ...session.payload({ messages: [first] }), reasoning_effort: "high" };
  expect(session.request({ payload, usage: read(0) })).toEqual(["model"]);
  expect(session.broken.at(-1)?.position).toBe("settings");
});

test("a section is reported if it changes at once or twice in a row, and not if it changes once", () => {
  const session = warmSession();
  session.request({ sections: { rules: "Be brief." }, messages: [first] });
  for (const rules of ["One.", "One.", "Two.", "Three."]) session.request({ sections: { rules }, messages: [first] });
  expect(session.varying).toEqual(["rules"]);
  const early = warmSession();
  early.request({ sections: { rules: "One." }, messages: [first] });
  expect(early.varying).toEqual(["rules"]);
});

test("transient text is not part of the comparison with the next request", () => {
  const session = new AuditedSession();
  session.branch.prompt();
  const nudge = { role: "user", content: "Compress the context soon." };
  session.changes.passing(nudge.content);
  expect(session.request({ messages: [first, nudge] })).toEqual([]);
  expect(session.request({ messages: [first, call, result] })).toEqual([]);
  expect(session.request({ messages: [first, call, result], usage: read(0) })).toEqual(["service"]);
});

test("an extension's section name is reported without line breaks and with a length limit", () => {
  const session = warmSession();
  const name = `a\nb${"c".repeat(300)}`;
  session.request({ sections: { [name]: "Be brief." }, messages: [first] });
  expect(session.request({ sections: { [name]: "Other." }, messages: [first], usage: read(0) })).toEqual([
    `section:a b${"c".repeat(300)}`.slice(0, 128),
  ]);
});
