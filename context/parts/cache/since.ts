import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { fromLeaf } from "../../../extension/branch-view.ts";
import type { ChangeLog } from "./change-log.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getLeafEntry" | "getEntry">;

/** Changes of a session's branch since the previous request. */
export interface Since {
  /** The previous request was made on another branch. */
  readonly isOtherBranch: boolean;
  readonly isCompacted: boolean;
  /** Entries of the previous request that were edited since, in branch order. */
  readonly edited: readonly string[];
}

/** `leafId`: the leaf at the previous request. */
export function whatCameSince(leafId: string | null, session: Session): Since {
  let isCompacted = false;
  let isReached = false;
  const edits = new Set<string>();
  const edited: string[] = [];
  for (const entry of fromLeaf(session)) {
    isReached ||= entry.id === leafId;
    if (isReached) {
      if (edits.size === edited.length) break;
      if (edits.has(entry.id)) edited.unshift(entry.id);
      continue;
    }
    if (entry.type === "compaction") isCompacted = true;
    if (entry.type === "context_edit") edits.add(entry.targetId);
  }
  return { isOtherBranch: leafId !== null && !isReached, isCompacted, edited };
}

/** The cause of changed earlier messages: `edit:` and the part's name, or `edit:foreign`. */
export function editCause({ edited }: Since, changes: ChangeLog, session: Session): string {
  const [first] = edited;
  if (first !== undefined) return `edit:${changes.partOf(first) ?? "foreign"}`;
  // Outputs of user commands and entries covered by blocks change only in requests, not on the branch.
  const inRequest = changes.entries().find((id) => session.getEntry(id) !== undefined);
  return `edit:${(inRequest === undefined ? undefined : changes.partOf(inRequest)) ?? "foreign"}`;
}
