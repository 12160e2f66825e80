import type { ContextTarget } from "../../protocol/context/document.ts";
import { exportContext } from "../../protocol/context/export.ts";
import { finishContext } from "../../protocol/context/finish.ts";
import { sessionEntries } from "../../protocol/context/session-entries.ts";

/** The entries of the session that is made of what was exported of another, without a header; none where nothing was. */
export function throughDocument(
  entries: readonly unknown[],
  target: ContextTarget,
  leafId?: string,
): readonly Readonly<Record<string, unknown>>[] {
  const options = { includeReasoning: true, ...(leafId === undefined ? {} : { leafId }) };
  const { items = [] } = exportContext(entries, options).document;
  if (items.length === 0) return [];
  const repaired = { items, nodes: items.length, repairs: { listed: [], counts: {} } };
  const prepared = finishContext(repaired, { budget: null }, target);
  return [...sessionEntries(prepared, { id: "s-2", timestamp: 1_800_000_000_000, cwd: "/" })].slice(1);
}
