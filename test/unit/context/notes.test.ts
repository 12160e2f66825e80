import { expect, test } from "vitest";
import { exportContext } from "../../../context/document/export.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { perform } from "../../../server/context/perform.ts";
import { call, PiSession, sessionTarget, text } from "../../helpers/pi-session.ts";
import { list, type Raw } from "./documents.ts";

// Every omission from the model's context is reported.

function notesOf(document: unknown): unknown {
  return prepareContext(document, { budget: null }, sessionTarget, defaultContextLimits).counts.notes;
}

function session(): PiSession {
  const made = new PiSession();
  const first = made.user("one");
  made.assistant([text("half")], { stopReason: "error" });
  made.append("label", { targetId: first, label: "start" });
  made.edit(made.assistant([text("one")]), null);
  made.compaction("What was.", made.user("two"));
  made.edit(made.user("three"), "tres");
  made.assistant([call("c1")]);
  return made;
}

test("omissions from the whole tree are counted like those of an export of the model's view", () => {
  const { document } = exportContext(session().entries, { view: "full" });
  const { notes } = exportContext(session().entries).diagnostics;
  expect(notes).toMatchObject({ compacted: 5, edited: 1, missing_result: 1 });
  expect(notesOf(document)).toEqual(notes);
});

test("omissions while importing another session are counted too", () => {
  const bytes = Buffer.from(
    session()
      .entries.map((entry) => `${JSON.stringify(entry)}\n`)
      .join(""),
  );
  const source = { kind: "session", bytes, source: { kind: "pi-session" } } as const;
  const work = { kind: "prepare", source, options: {}, target: sessionTarget, budget: null } as const;
  const { facts } = perform({ ...work, limits: defaultContextLimits, as: { kind: "facts" } });
  expect(facts.counts.notes).toEqual(exportContext(session().entries, { includeReasoning: true }).diagnostics.notes);
});

test.each<[string, Raw, Raw]>([
  [
    "an answer",
    { role: "assistant", content: "x", stopReason: "aborted", meta: { native: { type: "message" } } },
    { failed_answer: 1 },
  ],
  [
    "an event",
    { role: "event", eventType: "pi.entry:x", content: "x", meta: { native: { type: "y" } } },
    { not_for_model: 1 },
  ],
])("%s of a document that looks like one of pi's which are for nobody is left out, and counted", (_, item, notes) => {
  expect(
    notesOf(
      list([
        { role: "user", content: "Hello", timestamp: 1 },
        { ...item, timestamp: 2 },
      ]),
    ),
  ).toEqual(notes);
});

test("if nothing is omitted nothing is counted", () => {
  expect(notesOf(list([{ role: "user", content: "Hello", timestamp: 1 }]))).toBeUndefined();
});
