import type { Snapshot } from "../../protocol/event.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import type { Child } from "../pi/child.ts";
import { entriesAfter } from "../pi/entry-lines.ts";

type Entry = Readonly<Record<string, unknown>>;

/** A session at one position of its log: `session.cursor`. */
export interface SessionSnapshot {
  readonly session: SessionInfo;
  readonly snapshot: Snapshot;
}

export interface SnapshotOptions {
  readonly child: Child | undefined;
  readonly file: string;
  readonly info: () => SessionInfo;
  readonly maxBytes: number;
}

/** Reads the entries from pi, whose answer is ordered among its events; without a child, from its session file. */
export async function takeSnapshot({ child, file, info, maxBytes }: SnapshotOptions): Promise<SessionSnapshot> {
  if (child === undefined) {
    const lines = await entriesAfter(file, () => -1, maxBytes);
    const leafId = lines.at(-1)?.entry["id"];
    const entries = lines.map(({ entry }) => entry);
    return { session: info(), snapshot: snapshotOf(entries, typeof leafId === "string" ? leafId : null, maxBytes) };
  }
  let session: SessionInfo | undefined;
  const { data } = await child.send(
    { type: "get_entries" },
    {
      onResponse: () => {
        session = info();
      },
    },
  );
  const { entries, leafId } = isRecord(data) ? data : {};
  const known = Array.isArray(entries) ? entries.filter(isRecord) : [];
  const snapshot = snapshotOf(known, typeof leafId === "string" ? leafId : null, maxBytes);
  return { session: session ?? info(), snapshot };
}

/**
 * The messages from the root of pi's entry tree to its leaf; summaries appear at their position. The oldest are
 * omitted if the total exceeds `maxBytes`.
 */
function snapshotOf(entries: readonly Entry[], leafId: string | null, maxBytes: number): Snapshot {
  const byId = new Map(entries.map((entry) => [entry["id"], entry]));
  const messages: Entry[] = [];
  let bytes = 0;
  let omitted = 0;
  const seen = new Set<unknown>();
  for (let id: unknown = leafId; id !== null && id !== undefined && !seen.has(id); ) {
    seen.add(id);
    const entry = byId.get(id);
    if (entry === undefined) break;
    const message = messageOf(entry);
    if (message !== undefined) {
      bytes += Buffer.byteLength(JSON.stringify(message));
      if (omitted > 0 || bytes > maxBytes) omitted += 1;
      else messages.push(message);
    }
    id = entry["parentId"];
  }
  return { messages: messages.reverse() as Snapshot["messages"], leafId, ...(omitted > 0 ? { omitted } : {}) };
}

/** Converts an entry to a message in pi's format; undefined where it has no message. */
function messageOf(entry: Entry): Entry | undefined {
  const { type, message, summary, tokensBefore, fromId, customType, content, display, details } = entry;
  const timestamp = Date.parse(String(entry["timestamp"]));
  switch (type) {
    case "message":
      return isRecord(message) ? message : undefined;
    case "custom_message":
      return { role: "custom", customType, content, display, details, timestamp };
    case "compaction":
      return { role: "compactionSummary", summary, tokensBefore, timestamp };
    case "branch_summary":
      return { role: "branchSummary", summary, fromId, timestamp };
    default:
      return undefined;
  }
}
