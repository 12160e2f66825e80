import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { MessageOrigin } from "../protocol/event.ts";
import { DELIVERY_MARK } from "../protocol/link.ts";
import { isRecord } from "../protocol/objects.ts";
import { type BranchEntry, BranchReader, type BranchReaderOptions } from "./branch-reader.ts";
import type { Outbox } from "./outbox.ts";
import type { Port } from "./port.ts";
import { messageOf, type PiEntry } from "./updates/branch.ts";
import type { LiveUpdates } from "./updates/live-updates.ts";
import type { PiMessage } from "./updates/messages.ts";
import { Replay, type ReplayOptions } from "./updates/replay.ts";
import type { Told } from "./updates/told.ts";

/** What a session has in its file. */
export interface History {
  readonly branch: BranchReader;
  /** Whether a run is on. */
  readonly isRunning: boolean;
  readonly name: string | undefined;
  /** US dollars of the whole session. */
  readonly cost: number | undefined;
  /** What the daemon knows of the message of an entry. */
  readonly originOf: (entry: PiEntry) => MessageOrigin;
}

export interface ReadHistoryOptions extends Pick<BranchReaderOptions, "isLast"> {
  readonly port: Port;
  readonly sessionId: string;
  readonly outbox: Pick<Outbox, "hold">;
}

/** The daemon's lists have so many at most. The senders of older messages are not told. */
const maxKnown = 500;
/** How often the cost is asked for while the session goes on. */
const maxAttempts = 3;
/** These entries are shown, or counted, with all that is in them. */
const wholeTypes: ReadonlySet<unknown> = new Set(["message", "custom_message", "compaction", "branch_summary"]);

/** Reads the active branch, or with `isLast` what comes after an entry. */
export async function readHistory({ port, sessionId, outbox, isLast }: ReadHistoryOptions): Promise<History> {
  const hold = (value: object): (() => void) => outbox.hold(value);
  const [{ runId, name }, originOf] = await Promise.all([
    port.call("session/get", { sessionId }),
    readOrigins(port, sessionId),
  ]);
  const branch = await BranchReader.read({ port, sessionId, hold, isLast });
  const cost = isLast === undefined ? await costUpTo(port, sessionId, branch.newest) : undefined;
  return { branch, isRunning: runId !== undefined, name, cost, originOf };
}

/** The cost of a session up to an entry. Undefined: it is not known, because the session goes on. */
async function costUpTo(port: Port, sessionId: string, newest: PiEntry | undefined): Promise<number | undefined> {
  if (newest === undefined) return undefined;
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const stats = await port.call("session/getStats", { sessionId }).catch(() => undefined);
    const page = await port.call("transcript/page", { sessionId, limit: 1 }).catch(() => undefined);
    if (page?.leafId === newest["id"]) return stats?.cost;
  }
  return undefined;
}

/** Reads who sent the messages, as far as that is known: prompts by their entries, pushes by the marks in their entries. */
async function readOrigins(port: Port, sessionId: string): Promise<History["originOf"]> {
  const [{ prompts }, { deliveries }] = await Promise.all([
    port.call("prompt/list", { sessionId, limit: maxKnown }).catch(() => ({ prompts: [] })),
    port.call("delivery/list", { sessionId, limit: maxKnown }).catch(() => ({ deliveries: [] })),
  ]);
  const byEntry = new Map(prompts.map(({ entryId, promptId, by }) => [entryId, by ? { promptId, by } : { promptId }]));
  const byDelivery = new Map(
    deliveries.map(({ deliveryId, history }) => [deliveryId, history.find(({ state }) => state === "accepted")?.by]),
  );
  return ({ id, details }) => {
    const mark = isRecord(details) ? details[DELIVERY_MARK] : undefined;
    const by = isRecord(mark) ? byDelivery.get(String(mark["deliveryId"])) : undefined;
    return by === undefined ? (byEntry.get(String(id)) ?? {}) : { by };
  };
}

export interface TellHistoryOptions extends Pick<ReplayOptions, "place" | "compaction" | "contextSize"> {
  readonly outbox: Pick<Outbox, "emptied">;
  readonly update: (update: SessionUpdate) => void;
  /** The client has left the session. */
  readonly left: AbortSignal;
}

/** Tells the whole history, as fast as the client reads. Resolves with what was told, once the client has taken it. */
export async function tellHistory(history: History, options: TellHistoryOptions): Promise<Told> {
  const { branch, isRunning, name, cost, originOf } = history;
  const { outbox, update, left, ...shown } = options;
  const replay = new Replay({
    ...shown,
    title: name ?? branch.title,
    newest: branch.newest,
    lastTurn: messageOf(branch.newestTurn ?? {}),
    isRunning,
    by: (entry) => originOf(entry).by,
  });
  const tell = async (updates: Iterable<SessionUpdate>): Promise<void> => {
    for (const each of updates) {
      update(each);
      await outbox.emptied;
      if (left.aborted) return;
    }
  };
  await tell(replay.begin());
  for await (const part of branch.entries()) {
    if (left.aborted) break;
    await tell(replay.entry(await shownEntry(part)));
  }
  if (!left.aborted) await tell(replay.end(cost));
  return replay.told;
}

export interface TellMissedOptions {
  readonly outbox: Pick<Outbox, "emptied">;
  readonly live: Pick<LiveUpdates, "missed" | "hasNoLast">;
  /** Tells a user's message. */
  readonly user: (message: PiMessage, origin: MessageOrigin) => void;
  /** Whether it goes on. */
  readonly isWanted: () => boolean;
}

/** Tells the entries that the client lacks, as fast as it reads. Returns whether it is known which these are. */
export async function tellMissed({ branch, originOf }: History, options: TellMissedOptions): Promise<boolean> {
  const { outbox, live, user, isWanted } = options;
  if (!branch.isLastFound && !live.hasNoLast) {
    branch.close();
    return false;
  }
  const tell = live.missed({
    by: (entry) => originOf(entry).by,
    user: (message, entry) => user(message, originOf(entry)),
  });
  for await (const part of branch.entries()) {
    const entry = await shownEntry(part);
    await outbox.emptied;
    if (!isWanted()) break;
    tell(entry);
  }
  await outbox.emptied;
  return true;
}

async function shownEntry({ entry, whole }: BranchEntry): Promise<PiEntry> {
  return wholeTypes.has(entry["type"]) ? await whole() : entry;
}
