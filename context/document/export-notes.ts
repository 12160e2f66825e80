/**
 * Differences between the session and the exported document. First group: faults of the session's file; second: effects
 * of options or of the view; third: data without a place in the format.
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

/** Number of each note, without zeros. */
export type NoteCounts = Readonly<Partial<Record<ExportNote, number>>>;

export type NoteExport = (note: ExportNote) => void;

/** Counts the notes of an export. */
export class ExportNotes {
  readonly #counts = new Map<ExportNote, number>();
  readonly note: NoteExport = (note) => {
    this.#counts.set(note, (this.#counts.get(note) ?? 0) + 1);
  };

  get counts(): NoteCounts {
    return Object.fromEntries(this.#counts);
  }
}
