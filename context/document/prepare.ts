import type { ContextLimits } from "../../protocol/context-limits.ts";
import { chosenItems } from "./build.ts";
import type { PreparedContext } from "./built.ts";
import type { ContextTarget, Repair, RepairCode } from "./document.ts";
import { ExportNotes } from "./export-notes.ts";
import { repairNote } from "./faults.ts";
import { finishContext } from "./finish.ts";
import type { PrepareOptions } from "./options.ts";
import { projectItems } from "./projection.ts";
import { asRead } from "./read-document.ts";
import { repairItems } from "./repair.ts";
import { contextForStructured } from "./select.ts";

/** Number of repairs listed; all are counted. */
const maxListedRepairs = 1_000;

/**
 * Prepares a document (parsed JSON, or a result of `readDocument`) for pi: selects the conversation, repairs it for the
 * model, caps tool results, fits it into the budget, and builds the messages. Deterministic: the same input gives the
 * same result and hash.
 *
 * Throws `invalid_params`, `context_too_large`, `context_invalid` and `context_over_budget`.
 */
export function prepareContext(
  value: unknown,
  options: PrepareOptions,
  target: ContextTarget,
  limits: ContextLimits,
): PreparedContext {
  const document = asRead(value, limits);
  const { repair = true, until } = options;
  const nodeId = options.nodeId ?? document.leafId;
  const listed: Repair[] = [];
  const counts: Partial<Record<RepairCode, number>> = {};
  const note = repairNote(repair, (found) => {
    counts[found.code] = (counts[found.code] ?? 0) + 1;
    if (listed.length < maxListedRepairs) listed.push(found);
  });
  const notes = new ExportNotes();
  const selected = projectItems(contextForStructured(document, nodeId, { until, note, limits }), notes);
  // Before the repair, because leaving items out can leave a conversation that begins with an answer.
  const items = repairItems(chosenItems(selected, options), { target, repair, note, limits });
  const { source, nodes, items: given } = document;
  return finishContext(
    {
      items,
      nodes: (nodes ?? given ?? []).length,
      repairs: { listed, counts },
      notes: notes.counts,
      ...(source === undefined ? {} : { source }),
      ...(nodeId === undefined ? {} : { nodeId }),
    },
    options,
    target,
  );
}
