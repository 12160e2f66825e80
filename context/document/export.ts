import { CONTEXT_FORMAT, CONTEXT_VERSION, type ContextDocument, type ContextSource } from "./document.ts";
import { fullNodes } from "./export-full.ts";
import { ExportNotes, type NoteCounts } from "./export-notes.ts";
import { projectedItems } from "./export-projected.ts";
import { readImported } from "./imported.ts";
import type { ConvertOptions } from "./native-entry.ts";
import { readSessionTree } from "./session-tree.ts";

export interface ExportOptions {
  /** The id of the entry that is exported up to. Default: the last one, where pi itself would go on. */
  readonly leafId?: string;
  /**
   * `projected` (default): what the model would see, as `items`: the newest compaction with what it has kept, edits applied,
   * without what says nothing to the model. `full`: all branches with all entries, as `nodes`.
   */
  readonly view?: "projected" | "full";
  /** Default false. */
  readonly includeSystem?: boolean;
  /** The system items of the documents that the session was made of, without pi's own prompt. Default: `includeSystem`. */
  readonly includeInstructions?: boolean;
  /** Default false. Reasoning stays in the documents that are given to the same model again. */
  readonly includeReasoning?: boolean;
  /** Default true. Without, each image becomes a text of its type and size. */
  readonly includeImages?: boolean;
  /** Default: `{ kind: "pi-session", id }`. The source of the document that the session was made of is added as `origin`. */
  readonly source?: ContextSource;
  /** The id of the last entry that stands for a past which pi never had: compactions hide nothing up to there. */
  readonly heldThrough?: string;
}

export interface ExportDiagnostics {
  /** Sound entries of the session. */
  readonly entries: number;
  /** Nodes or items of the document. */
  readonly nodes: number;
  /** Calls with their results. */
  readonly pairs: number;
  /** How often each was met; those of 0 are left out. */
  readonly notes: NoteCounts;
}

/**
 * Writes a session of pi's as a document. The entries are those of its file or of a running pi, as they come out of JSON:
 * they may be anything. What cannot be read is left out and counted. Throws `entry_not_found` for an unknown leaf.
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
