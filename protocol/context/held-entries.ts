import type { BuiltMessage, PreparedContext } from "./built.ts";
import type { ContextRoot } from "./context-root.ts";
import { CONTEXT_ROOT_TYPE } from "./document.ts";
import { contextRoot, entryIds, isoTime, type SessionEntry } from "./session-entries.ts";

/**
 * What a session file's root entry would say of a context whose messages are in no file, for {@link heldEntries}. It is
 * `data` of such an entry, and read again as that.
 */
export function heldRoot(prepared: PreparedContext): ContextRoot {
  return contextRoot(prepared, entryIds(prepared.hash), false);
}

/** The entries that stand for messages which are in no session file, with what `root` says of them, for an export. */
export function* heldEntries(messages: readonly BuiltMessage[], hash: string, root: unknown): Generator<SessionEntry> {
  const idOf = entryIds(hash);
  const timestamp = isoTime(0);
  yield { type: "custom", id: idOf(0), parentId: null, timestamp, customType: CONTEXT_ROOT_TYPE, data: root };
  for (const [index, message] of messages.entries()) {
    const base = { id: idOf(index + 1), parentId: idOf(index), timestamp: isoTime(message.timestamp) };
    if (message.role !== "custom") yield { type: "message", ...base, message };
    else {
      const { role: _, timestamp: __, ...rest } = message;
      yield { type: "custom_message", ...base, ...rest };
    }
  }
}
