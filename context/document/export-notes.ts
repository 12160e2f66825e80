/**
 * What an export has met that is not in the document as the session has it. The first group is what the session's file has
 * wrong, the second what was asked for or is the view's nature, the third what the format has no place for.
 */
export const exportNotes = [
  "unreadable_entry",
  "duplicate_entry",
  "missing_parent",
  "cycle",
  "unreadable_content",
  "unsound_data",
  "orphan_result",
  "missing_result",

  "system",
  "reasoning",
  "image",
  "other_branch",
  "compacted",
  "edited",
  "edited_out",
  "failed_answer",
  "not_for_model",

  "carrier",
  "delivery_mark",
] as const;
export type ExportNote = (typeof exportNotes)[number];

/** How often each was met; those of 0 are left out. */
export type NoteCounts = Readonly<Partial<Record<ExportNote, number>>>;

export type NoteExport = (note: ExportNote) => void;

/** Counts what is noted; those of 0 are left out. */
export class ExportNotes {
  readonly #counts = new Map<ExportNote, number>();
  readonly note: NoteExport = (note) => {
    this.#counts.set(note, (this.#counts.get(note) ?? 0) + 1);
  };

  get counts(): NoteCounts {
    return Object.fromEntries(this.#counts);
  }
}
