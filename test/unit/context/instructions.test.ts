import { expect, test } from "vitest";
import { type ExportOptions, exportContext } from "../../../context/document/export.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { sessionTarget } from "../../helpers/pi-session.ts";

// The system items of a document after a session was built from it. pi adds its own prompt.

const document = {
  format: "pi-rpcd/context",
  version: 1,
  items: [
    { role: "system", content: "First.", timestamp: 1 },
    { role: "user", content: "Hello", timestamp: 2 },
    { role: "assistant", content: "Hi", timestamp: 3 },
    { role: "system", content: "Last.", timestamp: 4 },
  ],
};

function session(): readonly object[] {
  const prepared = prepareContext(document, { budget: null }, sessionTarget, defaultContextLimits);
  const entries = [...sessionEntries(prepared, { id: "s", timestamp: 9, cwd: "/" })];
  const leaf = entries.at(-1)?.["id"];
  const own = { role: "system", content: "pi's own.", timestamp: 5 };
  return [...entries, { type: "message", id: "own", parentId: leaf, timestamp: "2026-01-01T00:00:00Z", message: own }];
}

function exported(options: ExportOptions) {
  const { document: made, diagnostics } = exportContext(session(), options);
  const texts = (made.items ?? made.nodes ?? []).flatMap(({ content }) =>
    content.map((part) => "text" in part && part.text),
  );
  return { texts, notes: diagnostics.notes };
}

test.each([
  ["projected", ["pi's own.", "First.", "Hello", "Hi", "Last."]],
  ["full", ["First.", "Last.", "Hello", "Hi", "pi's own."]],
] as const)("are in an export (%s) without pi's prompt, with it, or counted as left out", (view, all) => {
  const without = (left: readonly string[]) => all.filter((text) => !left.includes(text));
  expect(exported({ view })).toEqual({ texts: ["Hello", "Hi"], notes: { system: 3 } });
  expect(exported({ view, includeInstructions: true })).toEqual({
    texts: without(["pi's own."]),
    notes: { system: 1 },
  });
  expect(exported({ view, includeSystem: true })).toEqual({ texts: all, notes: {} });
});
