import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { SeenEntry } from "../../parts/compaction/cut.ts";
import type { Block, BlockTree } from "../pruning-services.ts";

/** The beginning of a context that blocks cover without a gap. */
export interface CoveredPrefix {
  /** In transcript order. */
  readonly blocks: readonly Block[];
  /** Entries before the first block: the summary of a compaction. */
  readonly before: readonly SeenEntry[];
  readonly firstKeptEntryId: string;
  /** The index of the first kept entry in the context. */
  readonly keptAt: number;
}

/** `undefined`: the context does not begin with a block, or no entry could be kept after it. */
export function coveredPrefix(
  context: readonly SeenEntry[],
  tree: BlockTree,
  isUnanswered: (entryId: string) => boolean,
): CoveredPrefix | undefined {
  const blocks: Block[] = [];
  const before: SeenEntry[] = [];
  for (const [at, seen] of context.entries()) {
    const { sourceEntry } = seen;
    if (!isSeen(seen)) continue;
    if (sourceEntry.type === "compaction") {
      if (blocks.length > 0) return undefined;
      before.push(seen);
      continue;
    }
    const over = tree.over(sourceEntry.id);
    if (over !== undefined && !isUnanswered(sourceEntry.id)) {
      if (blocks.at(-1)?.id !== over.id) blocks.push(over);
      continue;
    }
    // A result without its call cannot come first.
    if (blocks.length === 0 || over !== undefined || seen.messages[0]?.role === "toolResult") return undefined;
    return { blocks, before, firstKeptEntryId: sourceEntry.id, keptAt: at };
  }
  return undefined;
}

/**
 * The entries of a context as the model sees them: a block's first entry has the block's text, its other entries are
 * empty.
 */
export function shownEntries(
  context: readonly SeenEntry[],
  tree: BlockTree,
  shown: (block: Block) => string,
): readonly SeenEntry[] {
  if (tree.active.length === 0) return context;
  const told = new Set<string>();
  return context.map((seen) => {
    const block = tree.over(seen.sourceEntry.id);
    if (block === undefined || !isSeen(seen)) return seen;
    const isFirst = !told.has(block.id);
    told.add(block.id);
    return { sourceEntry: seen.sourceEntry, messages: isFirst ? [messageOf(block, shown(block))] : [] };
  });
}

/** The nearest place where a context can be cut without splitting a block: before the block, else after it. */
export function cutAround(context: readonly SeenEntry[], at: number, tree: BlockTree): number | undefined {
  const block = tree.over(context[at]?.sourceEntry.id ?? "");
  if (block === undefined) return at;
  const isOf = ({ sourceEntry }: SeenEntry): boolean => tree.over(sourceEntry.id)?.id === block.id;
  const first = context.findIndex(isOf);
  if (context.slice(0, first).some((seen) => isSeen(seen) && seen.sourceEntry.type !== "compaction")) return first;
  const after = context.findLastIndex(isOf) + 1;
  const next = context.findIndex((seen, index) => index >= after && isSeen(seen));
  return next < 0 || context[next]?.messages[0]?.role === "toolResult" ? undefined : next;
}

/** Whether the entry contributes a conversation message. */
export function isSeen({ messages }: SeenEntry): boolean {
  return messages.some(({ role }) => role !== "system");
}

function messageOf({ id }: Block, text: string): AgentMessage {
  return {
    role: "custom",
    customType: `pi-rpcd.block.${id}`,
    content: [{ type: "text", text }],
    display: false,
    timestamp: 0,
  };
}
