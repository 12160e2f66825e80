import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../../extension/pi-types.ts";
import type { ChangeLog } from "./change-log.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getLeafEntry" | "getEntry">;

/** What has come to a session's branch behind the request before. */
export interface Since {
  /** The request before was made on a branch that is not this one's. */
  readonly isOtherBranch: boolean;
  readonly isCompacted: boolean;
  /** Entries of the request before that were edited since, the first of them first. */
  readonly edited: readonly string[];
}

/** `leafId`: the leaf when the request before was made. */
export function whatCameSince(leafId: string | null, session: Session): Since {
  let isCompacted = false;
  const edits = new Set<string>();
  let entry = session.getLeafEntry();
  for (; entry !== undefined && entry.id !== leafId; entry = above(entry, session)) {
    if (entry.type === "compaction") isCompacted = true;
    if (entry.type === "context_edit") edits.add(entry.targetId);
  }
  const edited: string[] = [];
  for (let old = entry; old !== undefined && edits.size > edited.length; old = above(old, session)) {
    if (edits.has(old.id)) edited.unshift(old.id);
  }
  return { isOtherBranch: leafId !== null && entry === undefined, isCompacted, edited };
}

function above(entry: SessionEntry, session: Session): SessionEntry | undefined {
  return entry.parentId === null ? undefined : session.getEntry(entry.parentId);
}

/** Whose change of earlier messages a request shows: `edit:` and the part's name, or `foreign`. */
export function editCause({ edited }: Since, changes: ChangeLog, session: Session): string {
  const [first] = edited;
  if (first !== undefined) return `edit:${changes.partOf(first) ?? "foreign"}`;
  // What a shell command of the user's has put out, and what blocks stand for, is changed in requests alone.
  const inRequest = changes.entries().find((id) => session.getEntry(id) !== undefined);
  return `edit:${(inRequest === undefined ? undefined : changes.partOf(inRequest)) ?? "foreign"}`;
}
