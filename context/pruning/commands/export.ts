import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningExport, PruningMode } from "../../../protocol/pruning/report.ts";
import type { PruningServices } from "../pruning-services.ts";
import { stateOf } from "./inspection.ts";

const maxBlocks = 10_000;
const maxChildren = 1_000;

/** The answer to `pruning/export`. */
export function exportOf(
  { blocks, ids }: Pick<PruningServices, "blocks" | "ids">,
  mode: PruningMode,
  ctx: ExtensionContext,
): PruningExport {
  const { sessionManager } = ctx;
  const tree = blocks.on(ctx);
  const named = sessionManager.getBranch().flatMap(({ id: entryId }) => {
    const id = ids.idOf(entryId, ctx);
    return id === undefined ? [] : [[id, entryId] as const];
  });
  return {
    v: 1,
    sessionId: sessionManager.getSessionId(),
    mode,
    blocks: tree.all.slice(-maxBlocks).map((block) => ({
      id: block.id,
      topic: block.topic.slice(0, 80).toWellFormed(),
      ...stateOf(block),
      entryId: block.entryId,
      firstEntryId: block.firstEntryId,
      lastEntryId: block.lastEntryId,
      entryIds: [...block.entryIds],
      children: block.children.slice(0, maxChildren),
      text: blocks.textOf(block, tree),
      tokensBefore: Math.round(block.tokensBefore),
      tokensAfter: Math.round(block.tokensAfter),
    })),
    ids: Object.fromEntries(named),
  };
}
