import type { ContextSummary } from "../protocol/context-option.ts";
import type { Result } from "../protocol/methods.ts";
import { oneLine, table } from "./text.ts";

type Inspected = Result<"context/inspect">;
type Dropped = Inspected["dropped"];

/** The summary of a context, for a terminal: facts in two columns, then a line for each repair. */
export function inspectLines(found: Inspected, columns: number | undefined): readonly string[] {
  const { counts, tokens, repairs, warnings } = found;
  const repaired = Object.entries(counts.repairs).map(([code, count]) => `${count} ${code}`);
  const facts = [
    ["mode", found.mode],
    [
      "items",
      `${counts.items} of ${counts.nodes} nodes; ${counts.pairs} ${counts.pairs === 1 ? "tool call with its result" : "tool calls with their results"}`,
    ],
    ["tokens", `about ${tokens.structured}; as one text about ${tokens.flattened}`],
    ["excluded", droppedText(found.dropped) ?? "nothing"],
    ["repaired", repaired.join(", ") || "nothing"],
    ...(counts.notes === undefined ? [] : [["changed", notesOf(counts.notes).join(", ")]]),
    ["warnings", warnings.join(", ") || "none"],
    ["hash", found.hash],
  ];
  const all = counted(counts.repairs);
  return [
    ...table(facts, columns),
    ...repairs.map(({ code, nodeId, detail }) =>
      oneLine(`${code}${nodeId === undefined ? "" : ` ${nodeId}`}: ${detail}`),
    ),
    ...(all > repairs.length ? [`and ${all - repairs.length} more`] : []),
  ];
}

/** Notes about a session's imported context: a line for each rule that repaired something. */
export function importLines({
  messages,
  tokens,
  repairs,
  notes = {},
  dropped,
  warnings,
}: ContextSummary): readonly string[] {
  const left = droppedText(dropped);
  return [
    `context: ${messages} messages, about ${tokens.structured} tokens`,
    ...Object.entries(repairs).map(([code, count]) => oneLine(`repaired: ${count} ${code}`)),
    ...notesOf(notes, unseen).map((note) => `changed: ${note}`),
    ...(left === undefined ? [] : [`excluded by the budget: ${left}`]),
    ...warnings.map((warning) => `warning: ${warning}`),
  ];
}

/** The parts of a session that its exported document does not contain: a line for each kind. */
export function exportLines({ notes }: Result<"context/export">["diagnostics"]): readonly string[] {
  return notesOf(notes).map((note) => `changed: ${note}`);
}

/** Entries that no model saw, or that each pi adds again, are not reported as missing. */
const unseen: ReadonlySet<string> = new Set(["not_for_model", "other_branch", "carrier", "delivery_mark", "system"]);

function notesOf(notes: Readonly<Record<string, number>>, without?: ReadonlySet<string>): readonly string[] {
  const reported = Object.entries(notes).filter(([kind]) => without?.has(kind) !== true);
  return reported.map(([kind, count]) => oneLine(`${count} ${kind}`));
}

function droppedText({ messages, tokens }: Dropped): string | undefined {
  return messages === 0 ? undefined : `${messages} messages, about ${tokens} tokens`;
}

function counted(repairs: Inspected["counts"]["repairs"]): number {
  return Object.values(repairs).reduce((sum, count) => sum + count, 0);
}
