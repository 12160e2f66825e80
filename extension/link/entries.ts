import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { EntriesReply } from "../../protocol/link.ts";

/** Number of newest entries reported. */
const maxIds = 10_000;

/** Returns the ids of this pi's entries after the given one, in order, and the leaf of its branch. */
export function entriesAfter(
  session: Pick<ExtensionContext["sessionManager"], "getEntries" | "getLeafId">,
  since: string | undefined,
): EntriesReply {
  const entries = session.getEntries();
  const at = since === undefined ? -1 : entries.findLastIndex(({ id }) => id === since);
  const leafId = session.getLeafId();
  return {
    ids: entries
      .slice(at + 1)
      .slice(-maxIds)
      .map(({ id }) => id),
    ...(typeof leafId === "string" ? { leafId } : {}),
  };
}
