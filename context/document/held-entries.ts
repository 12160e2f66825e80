import type { BuiltMessage, HelperContext } from "../../protocol/link-context.ts";
import type { PreparedContext } from "./built.ts";
import type { ContextRoot } from "./context-root.ts";
import { CONTEXT_ROOT_TYPE } from "./document.ts";
import { contextRoot, entryIds, isoTime, type SessionEntry } from "./session-entries.ts";
import { pathTo, readSessionTree } from "./session-tree.ts";
import { trimmed } from "./trim.ts";

/**
 * What a session file's root entry would say of a context whose messages are in no file, for {@link heldEntries}. It is
 * `data` of such an entry, and read again as that.
 */
export function heldRoot(prepared: PreparedContext): ContextRoot {
  return contextRoot(prepared, entryIds(prepared.hash), false);
}

/**
 * The entries that stand for messages which are in no session file, with what `root` says of them, for an export. `left`:
 * what compactions have left of the messages; each has the id that it had before.
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
 * What the model is given of the messages when pi stands at `leafId` of its own entries: what the compactions on the way
 * there have left of them. Default: at the last one.
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

/** Where the messages were. Those that are left are the last ones, some of them cut, behind a notice at most. */
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

/** The instructions that stood before what is gone still stand in the prompt. */
function withSystem(root: ContextRoot, left: ReadonlySet<string>, rootId: string): ContextRoot {
  if (root.system === undefined) return root;
  const system = root.system.map((extra) =>
    extra.before === null || left.has(extra.before) ? extra : { ...extra, before: rootId },
  );
  return { ...root, system };
}
