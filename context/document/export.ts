import { CONTEXT_FORMAT, CONTEXT_VERSION, type ContextDocument, type ContextSource } from "./document.ts";
import { fullNodes } from "./export-full.ts";
import { ExportNotes, type NoteCounts } from "./export-notes.ts";
import { projectedItems } from "./export-projected.ts";
import { readImported } from "./imported.ts";
import type { ConvertOptions } from "./native-entry.ts";
import { readSessionTree } from "./session-tree.ts";

export interface ExportOptions {
  /** Id of the last exported entry. Default: the last entry, where pi would continue. */
  readonly leafId?: string;
  /**
   * `projected` (default): what the model would see, as `items`: the newest compaction and the entries that it kept,
   * with edits applied, without entries that the model does not see. `full`: all entries of all branches, as `nodes`.
   */
  readonly view?: "projected" | "full";
  /** Default false. */
  readonly includeSystem?: boolean;
  /** The system items of the imported documents, without pi's own prompt. Default: `includeSystem`. */
  readonly includeInstructions?: boolean;
  /** Default false. Set it for documents that go back to the same model. */
  readonly includeReasoning?: boolean;
  /** Default true. If false, each image is replaced with a text of its type and size. */
  readonly includeImages?: boolean;
  /** Default: `{ kind: "pi-session", id }`. The source of an imported document is added as `origin`. */
  readonly source?: ContextSource;
  /** Id of the last entry of a history that pi never had. Compactions hide nothing up to that entry. */
  readonly heldThrough?: string;
}

export interface ExportDiagnostics {
  /** Number of valid entries of the session. */
  readonly entries: number;
  /** Number of nodes or items of the document. */
  readonly nodes: number;
  /** Calls with their results. */
  readonly pairs: number;
  /** Number of each note, without zeros. */
  readonly notes: NoteCounts;
}

/**
 * Exports a pi session as a document. The entries are untrusted JSON from its file or a running pi; unreadable ones are
 * left out and counted. Throws `entry_not_found` for an unknown leaf.
 */
export function exportContext(
  entries: readonly unknown[],
  options: ExportOptions = {},
): { readonly document: ContextDocument; readonly diagnostics: ExportDiagnostics } {
  const { includeSystem = false, includeReasoning = false, includeImages = true } = options;
  const { includeInstructions = includeSystem } = options;
  const notes = new ExportNotes();
  const tree = readSessionTree(entries, options.leafId, notes.note);
  const convert: ConvertOptions = { includeSystem, includeInstructions, includeReasoning, includeImages };
  const imported = readImported(tree, notes.note);
  const { sessionId } = tree;
  const { origin } = imported;
  const source = {
    ...(options.source ?? { kind: "pi-session", ...(sessionId === undefined ? {} : { id: sessionId }) }),
    ...(origin === undefined ? {} : { origin }),
  };
  const content = options.view === "full" ? fullNodes(tree, imported, convert, notes.note) : projected();
  const document: ContextDocument = { format: CONTEXT_FORMAT, version: CONTEXT_VERSION, source, ...content };
  const list = document.nodes ?? document.items ?? [];
  const diagnostics = {
    entries: tree.entries.length,
    nodes: list.length,
    pairs: list.filter(({ role }) => role === "toolResult").length,
    notes: notes.counts,
  };
  return { document, diagnostics };

  function projected(): Pick<ContextDocument, "items"> {
    return { items: projectedItems(tree, imported, convert, notes.note, options.heldThrough) };
  }
}
