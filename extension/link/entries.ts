import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { EntriesReply } from "../../protocol/link.ts";

/** The newest so many are told. */
const maxIds = 10_000;

/** The entries that this pi has in memory behind one of them, in their order, and where its branch ends. */
export function entriesBehind(
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
