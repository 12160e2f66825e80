import { describe, expect, test } from "vitest";
import { type ExportOptions, exportContext } from "../../../context/document/export.ts";
import { heldEntries, heldRoot } from "../../../context/document/held-entries.ts";
import { normalise } from "../../../context/document/normalise.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { readDocument } from "../../../context/document/read-document.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { call, PiSession, sessionModel, sessionTarget, text } from "../../helpers/pi-session.ts";
import { list, type Raw } from "./documents.ts";

// Extreme values that a document may have, converted to a session and back.

const { api, provider, model: id } = sessionModel;
const model = { api, provider, id };
const said = { role: "user", content: "Hello", timestamp: 1 };
const result = { role: "toolResult", toolCallId: "c", toolName: "bash", content: "ok", timestamp: 3 };
const calling = { role: "assistant", toolCalls: [{ id: "c", name: "bash", arguments: {} }], timestamp: 2 };

/** An object with this nesting depth. */
function deep(levels: number): Raw {
  let made: Raw = {};
  for (let level = 1; level < levels; level += 1) made = { in: made };
  return made;
}

/** The result of a document's items, from a session's file and from a helper. */
function back(document: Raw, options: ExportOptions = {}) {
  const prepared = prepareContext(document, { budget: null }, sessionTarget, defaultContextLimits);
  const file = sessionEntries(prepared, { id: "s", timestamp: 9, cwd: "/" });
  const held = heldEntries(prepared.messages, prepared.hash, heldRoot(prepared));
  return [file, held].map((entries) => {
    const lines = [...entries].map((entry) => JSON.parse(JSON.stringify(entry)) as unknown);
    const { document: made, diagnostics } = exportContext(lines, options);
    return { items: made.items, notes: diagnostics.notes };
  });
}

const custom = { type: "custom_message", customType: "ci", display: true, details: deep(64) };
const reasoning = { type: "reasoning", text: "Hm.", signature: "s", redacted: false };

test.each<[string, readonly Raw[]]>([
  ["an event's meta", [said, { role: "event", eventType: "ci", content: "x", meta: { a: deep(65) }, timestamp: 2 }]],
  ["a message's meta", [{ ...said, meta: { a: deep(65) } }]],
  [
    "a custom message's details",
    [said, { role: "event", eventType: "pi.custom:ci", content: "x", meta: { native: custom }, timestamp: 2 }],
  ],
  ["a result's details and usage", [said, calling, { ...result, details: deep(66), usage: deep(66) }]],
  ["a call's arguments", [said, { ...calling, toolCalls: [{ id: "c", name: "bash", arguments: deep(64) }] }, result]],
  ["a block of the model's own", [said, { ...calling, model, blocks: [{ ...call("c", {}), more: deep(64) }] }, result]],
])("%s may be as deep as a document may be, and comes back whole", (_, items) => {
  const document = list(items);
  const expected = normalise(document, sessionTarget).items;
  for (const { items: came, notes } of back(document)) {
    expect(notes).toEqual({});
    expect(came).toEqual(expected);
  }
});

test("a reasoning marked as not redacted keeps the mark", () => {
  const own = { role: "assistant", model, content: [reasoning, { type: "text", text: "Hi" }], timestamp: 2 };
  for (const { items } of back(list([said, own]), { includeReasoning: true })) {
    expect(items?.[1]?.content[0]).toEqual(reasoning);
  }
});

test("an event of pi's that can have only one text has its texts joined, also when it is normalised", () => {
  const texts = [
    { type: "text", text: "one " },
    { type: "text", text: "two" },
  ];
  const events = [
    { eventType: "pi.compaction", meta: { native: { type: "compaction", tokensBefore: 5 } } },
    { eventType: "pi.branchSummary", meta: { native: { type: "branch_summary", fromId: "x" } } },
    {
      eventType: "pi.bash",
      meta: { native: { type: "bashExecution", command: "ls", cancelled: false, truncated: false } },
    },
    { eventType: "ci" },
  ];
  const document = list([said, ...events.map((event) => ({ role: "event", content: texts, timestamp: 2, ...event }))]);
  const expected = normalise(document, sessionTarget).items ?? [];
  const one = [{ type: "text", text: "one two" }];
  expect(expected.map(({ content }) => content)).toEqual([[text("Hello")], one, one, one, texts]);
  for (const { items } of back(document)) expect(items).toEqual(expected);
});

describe("losses of an export", () => {
  const hostile = JSON.parse('{"a":1,"__proto__":{"b":2}}') as Raw;

  test.each<[string, (session: PiSession) => void]>([
    ["a result's details", (session) => session.result("c", "ok", { details: hostile })],
    ["a result's usage", (session) => session.result("c", "ok", { usage: hostile })],
    ["a result's details that are too deep", (session) => session.result("c", "ok", { details: deep(67) })],
    [
      "a custom message's details",
      (session) => session.append("custom_message", { customType: "ci", content: "x", details: hostile }),
    ],
    ["a compaction's details", (session) => session.compaction("x", undefined, { details: hostile })],
    ["a call's arguments", (session) => session.assistant([call("d", hostile)])],
    ["a block's field", (session) => session.assistant([{ ...text("x"), more: hostile }])],
    ["a field of an answer", (session) => session.assistant([text("x")], { more: hostile })],
    ["the usage of an answer", (session) => session.assistant([text("x")], { usage: hostile })],
  ])("of %s is counted", (_, add) => {
    const session = new PiSession();
    session.user("Hello");
    session.assistant([call("c")]);
    add(session);
    const { notes } = exportContext(session.entries, { view: "full" }).diagnostics;
    expect(notes).toEqual({ unsound_data: 1 });
  });

  test("of a root entry's fields are counted", () => {
    const [made] = back(list([{ ...said, meta: hostile }]));
    expect(made?.notes).toEqual({ unsound_data: 1 });
    expect(made?.items?.[0]?.meta).toEqual({ a: 1 });
  });

  test("leave a document that can be read again, however deep it was", () => {
    for (let levels = 55; levels < 75; levels += 1) {
      const session = new PiSession();
      session.append("custom_message", { customType: "ci", content: "x", details: deep(levels) });
      session.append("of_the_future", { anything: deep(levels) });
      const first = session.assistant([{ ...text("x"), more: deep(levels) }, call("c", deep(levels))], {
        more: deep(levels),
      });
      session.result("c", "ok", { details: deep(levels), usage: deep(levels), more: deep(levels) });
      session.edit(first, [call("d", deep(levels)), { ...text("y"), more: deep(levels) }]);
      const { document } = exportContext(session.entries, { view: "full" });
      expect(() => readDocument(document, defaultContextLimits), `${levels}`).not.toThrow();
    }
  });

  test("of a source that would make the document too deep omit the source", () => {
    for (const levels of [60, 64, 65, 68]) {
      const source = { ...deep(levels), kind: "tree" };
      const prepared = prepareContext(
        { ...list([said]), source },
        { budget: null },
        sessionTarget,
        defaultContextLimits,
      );
      const { document } = exportContext([...sessionEntries(prepared, { id: "s", timestamp: 9, cwd: "/" })]);
      expect(() => readDocument(document, defaultContextLimits)).not.toThrow();
      expect(document.source?.["origin"]).toEqual(levels > 64 ? undefined : source);
    }
  });
});
