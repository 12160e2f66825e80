import { expect, test } from "vitest";
import { exportContext } from "../../../context/document/export.ts";
import { heldEntries, heldRoot } from "../../../context/document/held-entries.ts";
import { normalise } from "../../../context/document/normalise.ts";
import { prepareContext } from "../../../context/document/prepare.ts";
import { sessionEntries } from "../../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../../protocol/context-limits.ts";
import { sessionTarget } from "../../helpers/pi-session.ts";
import { list, type Raw } from "./documents.ts";

// The content of pi's own events after passing through a session.

const details = { files: ["a.ts"], deep: { n: 1 } };

const natives: readonly (readonly [string, string, Raw])[] = [
  ["a compaction", "pi.compaction", { type: "compaction", tokensBefore: 5, details, fromHook: true }],
  ["a summary of a branch", "pi.branchSummary", { type: "branch_summary", fromId: "x", details, fromHook: false }],
  ["a command", "pi.bash", { type: "bashExecution", command: "ls", exitCode: 1, cancelled: false, truncated: true }],
  ["a custom message", "pi.custom:ci", { type: "custom_message", customType: "ci", display: false, details }],
  ["a compaction of a later version", "pi.compaction", { type: "compaction", tokensBefore: 5, more: [1] }],
  ["a command that says little", "pi.bash", { type: "bashExecution", command: "ls", exitCode: null }],
  ["a custom message that says little", "pi.custom:ci", { type: "custom_message", customType: "ci" }],
];

test.each(natives)("%s comes back with all its fields, at any place", (_, eventType, native) => {
  const event = { role: "event", eventType, content: "What was.", meta: { native, mine: 1 }, timestamp: 3 };
  const said = { role: "user", content: "Hello", timestamp: 1 };
  for (const items of [
    [event, said],
    [said, event],
    [said, event, event],
  ]) {
    const prepared = prepareContext(list(items), { budget: null }, sessionTarget, defaultContextLimits);
    const lines = [...sessionEntries(prepared, { id: "s", timestamp: 9, cwd: "/" })];
    const session: unknown[] = JSON.parse(JSON.stringify(lines));
    const held = [...heldEntries(prepared.messages, prepared.hash, heldRoot(prepared))];
    const expected = normalise(list(items), sessionTarget).items;
    expect(exportContext(session).document.items).toEqual(expected);
    expect(exportContext(JSON.parse(JSON.stringify(held)) as unknown[]).document.items).toEqual(expected);
    // pi's own entry has it, if the place allows one: its summaries show it to other extensions.
    if (items[0] === event && "details" in native) expect(session[2]).toMatchObject({ details });
  }
});
