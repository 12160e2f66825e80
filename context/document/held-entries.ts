import { CONTEXT_ROOT_TYPE } from "../../protocol/link.ts";
import type { BuiltMessage, HelperContext } from "../../protocol/link-context.ts";
import type { PreparedContext } from "./built.ts";
import type { ContextRoot } from "./context-root.ts";
import { contextRoot, entryIds, isoTime, type SessionEntry } from "./session-entries.ts";
import { pathTo, readSessionTree } from "./session-tree.ts";
import { trimmed } from "./trim.ts";

/**
 * Builds the root entry data of a context whose messages are in no file, for {@link heldEntries}, and reads it back.
 */
export function heldRoot(prepared: PreparedContext): ContextRoot {
  return contextRoot(prepared, entryIds(prepared.hash), false);
}

/**
 * Yields entries for messages that are in no session file, with the data of `root`, for an export. `left`: the messages
 * that compactions kept, with their original ids.
 */
export function* heldEntries(
  messages: readonly BuiltMessage[],
  hash: string,
  root: ContextRoot,
  left: readonly BuiltMessage[] = messages,
): Generator<SessionEntry> {
  const idOf = entryIds(hash);
  const timestamp = isoTime(0);
  const rootId = idOf(0);
  const ids = indexesIn(messages, left).map((index) => idOf(index + 1));
  const data = left === messages ? root : withSystem(root, new Set(ids), rootId);
  yield { type: "custom", id: rootId, parentId: null, timestamp, customType: CONTEXT_ROOT_TYPE, data };
  for (const [place, message] of left.entries()) {
    const base = { id: ids[place], parentId: ids[place - 1] ?? rootId, timestamp: isoTime(message.timestamp) };
    if (message.role !== "custom") yield { type: "message", ...base, message };
    else {
      const { role: _, timestamp: __, ...rest } = message;
      yield { type: "custom_message", ...base, ...rest };
    }
  }
}

/**
 * Returns the messages that the model gets when `leafId` is pi's leaf: those that the compactions on the path kept.
 * Default: the last entry.
 */
export function leftAt(
  { messages, budget, afterCompaction }: HelperContext,
  entries: readonly unknown[],
  leafId: string | undefined,
): readonly BuiltMessage[] {
  if (afterCompaction === "keep") return messages;
  const tree = readSessionTree(entries, undefined, () => {});
  const leaf = leafId === undefined ? tree.leaf : (tree.indexOf.get(leafId) ?? -1);
  const compactions = pathTo(tree, leaf).filter((index) => tree.entries[index]?.type === "compaction").length;
  if (compactions === 0) return messages;
  return afterCompaction === "drop" ? [] : trimmed(messages, budget, compactions);
}

/**
 * Returns the original indexes of the kept messages. They are the last ones, possibly shortened, after at most one
 * notice.
 */
function indexesIn(messages: readonly BuiltMessage[], left: readonly BuiltMessage[]): readonly number[] {
  let end = messages.length;
  return left
    .toReversed()
    .map((message) => {
      const own = messages[end - 1];
      const isCut = message.role === "toolResult" && own?.role === "toolResult";
      if (message !== own && !isCut) return messages.length;
      end -= 1;
      return end;
    })
    .reverse();
}

/** Instructions before removed messages are still in the prompt. */
function withSystem(root: ContextRoot, left: ReadonlySet<string>, rootId: string): ContextRoot {
  if (root.system === undefined) return root;
  const system = root.system.map((extra) =>
    extra.before === null || left.has(extra.before) ? extra : { ...extra, before: rootId },
  );
  return { ...root, system };
}
