import type { ContextDocument, ContextTarget, Repair } from "../../context/document/document.ts";
import { type ExportOptions, exportContext } from "../../context/document/export.ts";
import { prepareContext } from "../../context/document/prepare.ts";
import { sessionEntries } from "../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../protocol/context-limits.ts";
import { WireError } from "../../protocol/errors.ts";

type Entries = readonly Readonly<Record<string, unknown>>[];

export interface Through {
  /** Without a header; empty if there is nothing to report. */
  readonly entries: Entries;
  readonly repairs: readonly Repair[];
}

/** The session that is built from another's export. */
export function throughDocument(entries: Entries, target: ContextTarget, options: ExportOptions = {}): Through {
  return imported(exportContext(entries, { includeReasoning: true, ...options }).document, target);
}

/** The session that is built from a document as parsed from JSON. */
export function imported(document: ContextDocument, target: ContextTarget): Through {
  const given: unknown = JSON.parse(JSON.stringify(document));
  try {
    const prepared = prepareContext(given, { budget: null, until: "through" }, target, defaultContextLimits);
    const header = { id: "s-2", timestamp: 1_800_000_000_000, cwd: "/" };
    return { entries: [...sessionEntries(prepared, header)].slice(1), repairs: prepared.repairs };
  } catch (error) {
    if (error instanceof WireError && error.data["code"] === "nothing_selected") return { entries: [], repairs: [] };
    throw error;
  }
}
