import { CONTEXT_ROOT_TYPE } from "../../protocol/link.ts";
import type { BuiltMessage } from "../../protocol/link-context.ts";
import type { PreparedContext } from "./built.ts";
import { type ContextRoot, type EntryExtra, entryExtra, type SystemExtra } from "./context-root.ts";
import type { ContextItem } from "./document.ts";
import { nativeEventOf } from "./native-event.ts";

/** First line of a session file. */
export interface SessionHeaderFacts {
  readonly id: string;
  /** Unix milliseconds. Restored compactions are never later, because pi would not compact again before that time. */
  readonly timestamp: number;
  /** Absolute path where pi runs the tools. */
  readonly cwd: string;
  /** The file that the session was forked from. */
  readonly parentSession?: string;
}

/** One line of a session file, as an object. */
export type SessionEntry = Readonly<Record<string, unknown>> & { readonly type: string };

/**
 * Yields the lines of a session file (version 3) with the context: the header, the root entry with data that pi has no
 * field for, and the messages as a chain. Ids are derived from the content.
 */
export function* sessionEntries(prepared: PreparedContext, header: SessionHeaderFacts): Generator<SessionEntry> {
  const { id, timestamp, cwd, parentSession } = header;
  yield {
    type: "session",
    version: 3,
    id,
    timestamp: isoTime(timestamp),
    cwd,
    ...(parentSession === undefined ? {} : { parentSession }),
  };
  const idOf = entryIds(prepared.hash);
  const root = idOf(0);
  yield {
    type: "custom",
    id: root,
    parentId: null,
    timestamp: isoTime(timestamp),
    customType: CONTEXT_ROOT_TYPE,
    data: contextRoot(prepared, idOf, true),
  };
  const conversation = prepared.items.filter(({ role }) => role !== "system");
  for (const [index, message] of prepared.messages.entries()) {
    const place: Place = { id: idOf(index + 1), parentId: idOf(index), isFirst: index === 0, notAfter: timestamp };
    yield entryOf(message, conversation[index], place);
  }
}

interface Place {
  readonly id: string;
  readonly parentId: string;
  readonly isFirst: boolean;
  readonly notAfter: number;
}

function entryOf(
  message: BuiltMessage,
  item: ContextItem | undefined,
  { id, parentId, isFirst, notAfter }: Place,
): SessionEntry {
  const base = { id, parentId, timestamp: isoTime(message.timestamp) };
  // Earlier messages must not count as part of the session's time. The message itself keeps its time.
  const written = isoTime(Math.min(message.timestamp, notAfter));
  switch (message.role) {
    case "custom": {
      const { customType, content, display, details } = message;
      return {
        type: "custom_message",
        ...base,
        customType,
        content,
        display,
        ...(details === undefined ? {} : { details }),
      };
    }
    case "branchSummary": {
      const { summary, fromId } = message;
      return { type: "branch_summary", ...base, fromId, summary, ...summaryFields(item) };
    }
    case "compactionSummary":
      // After other messages it would hide them.
      if (!isFirst) return { type: "message", ...base, timestamp: written, message };
      return {
        type: "compaction",
        ...base,
        timestamp: isoTime(Math.min(message.timestamp, notAfter)),
        summary: message.summary,
        // Its own id: nothing before it is kept.
        firstKeptEntryId: id,
        tokensBefore: message.tokensBefore,
        ...summaryFields(item),
      };
    default:
      return { type: "message", ...base, timestamp: written, message };
  }
}

function summaryFields(item: ContextItem | undefined): Readonly<Record<string, unknown>> {
  const native = item === undefined ? undefined : nativeEventOf(item);
  if (native?.type !== "compaction" && native?.type !== "branch_summary") return {};
  const { details, fromHook } = native;
  return { ...(details === undefined ? {} : { details }), ...(fromHook === undefined ? {} : { fromHook }) };
}

/** Builds the data of a root entry. `haveEntries`: summaries become entries of their own types, where pi allows it. */
export function contextRoot(
  prepared: PreparedContext,
  idOf: (index: number) => string,
  haveEntries: boolean,
): ContextRoot {
  const { hash, source, nodeId, instructions, items, messages } = prepared;
  const system: SystemExtra[] = [];
  const entries: Record<string, EntryExtra> = {};
  let index = 0;
  for (const item of items) {
    const message = messages[index];
    const id = idOf(index + 1);
    if (item.role === "system") system.push({ before: message === undefined ? null : id, item });
    else if (message !== undefined) {
      const isOwnEntry = haveEntries && (message.role !== "compactionSummary" || index === 0);
      const extra = entryExtra(item, message, isOwnEntry);
      if (extra !== undefined) entries[id] = extra;
      index += 1;
    }
  }
  return {
    version: 1,
    hash,
    ...(source === undefined ? {} : { source }),
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(system.length === 0 ? {} : { system }),
    entries,
  };
}

/**
 * Returns a generator of ids like pi's: eight hexadecimal digits, all different, because an odd step visits every
 * number once.
 */
export function entryIds(hash: string): (index: number) => string {
  const first = Number.parseInt(hash.slice(0, 8), 16);
  return (index) => ((Math.imul(index, idStep) + first) >>> 0).toString(16).padStart(8, "0");
}

const idStep = 0x9e3779b1;

/** Maximum distance of a date from the epoch, in milliseconds. */
const maxTime = 8.64e15;

/** Formats a time as ISO text, also if it is out of range. */
export function isoTime(timestamp: number): string {
  return new Date(Math.min(Math.max(timestamp, -maxTime), maxTime)).toISOString();
}
