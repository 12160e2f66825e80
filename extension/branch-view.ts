import type { SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import type { SessionEntry, SessionReader } from "./pi-types.ts";

type CompactionDraft = Pick<Extract<SessionBoundaryDraft, { type: "compaction" }>, "firstKeptEntryId">;

const editableRoles: ReadonlySet<string> = new Set(["user", "assistant", "toolResult"]);

/** The newest `limit` entries of the active branch, newest first. Ends at a cycle of a damaged file. */
export function* fromLeaf(session: SessionReader, limit = Number.POSITIVE_INFINITY): Generator<SessionEntry> {
  const seen = new Set<string>();
  let entry = session.getLeafEntry();
  while (entry !== undefined && !seen.has(entry.id) && seen.size < limit) {
    seen.add(entry.id);
    yield entry;
    entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
  }
}

/** The active branch at a boundary, read once on first use. */
export class BranchView {
  readonly #session: SessionReader;
  #newestFirst: ReadonlyMap<string, SessionEntry> | undefined;
  #edited: ReadonlySet<string> | undefined;
  #kept: { readonly by: CompactionDraft | undefined; readonly ids: ReadonlySet<string> } | undefined;

  constructor(session: SessionReader) {
    this.#session = session;
  }

  has(entryId: string): boolean {
    return this.#entries().has(entryId);
  }

  /** Whether pi accepts an edit of the entry. */
  isEditable(entryId: string): boolean {
    const entry = this.#entries().get(entryId);
    return entry?.type === "custom_message" || (entry?.type === "message" && editableRoles.has(entry.message.role));
  }

  isEdited(entryId: string): boolean {
    this.#edited ??= new Set(
      [...this.#entries().values()].flatMap((entry) => (entry.type === "context_edit" ? [entry.targetId] : [])),
    );
    return this.#edited.has(entryId);
  }

  /**
   * Whether the entry is in the context, that is, kept by the newest compaction. `made` is a compaction about to be
   * written.
   */
  isKept(entryId: string, made?: CompactionDraft): boolean {
    if (this.#kept === undefined || this.#kept.by !== made) this.#kept = { by: made, ids: this.#keptBy(made) };
    return this.#kept.ids.has(entryId);
  }

  #keptBy(made: CompactionDraft | undefined): ReadonlySet<string> {
    const ids = new Set<string>();
    let firstKept = made === undefined ? undefined : made.firstKeptEntryId;
    let isKept = firstKept !== null;
    for (const [id, entry] of this.#entries()) {
      if (isKept) ids.add(id);
      if (id === firstKept) isKept = false;
      if (entry.type !== "compaction" || firstKept !== undefined) continue;
      firstKept = entry.firstKeptEntryId;
      isKept = firstKept !== id;
    }
    return ids;
  }

  #entries(): ReadonlyMap<string, SessionEntry> {
    this.#newestFirst ??= new Map([...fromLeaf(this.#session)].map((entry) => [entry.id, entry]));
    return this.#newestFirst;
  }
}
