import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { MessageOrigin } from "../protocol/event.ts";
import { DELIVERY_MARK } from "../protocol/link.ts";
import { isRecord } from "../protocol/objects.ts";
import type { Outbox } from "./outbox.ts";
import type { Port } from "./port.ts";
import type { PiEntry } from "./updates/branch.ts";
import type { LiveUpdates, TellMissed } from "./updates/live-updates.ts";
import type { PiMessage } from "./updates/messages.ts";
import { Replay, type ReplayOptions } from "./updates/replay.ts";
import type { Entries, Told } from "./updates/told.ts";

/** What a session has in its file. */
export interface History {
  readonly entries: Entries;
  /** Whether a run is on. */
  readonly isRunning: boolean;
  /** What the daemon knows of the message of an entry. */
  readonly originOf: (entry: PiEntry) => MessageOrigin;
}

/** The daemon's lists have so many at most. The senders of older messages are not told. */
const maxKnown = 500;

export async function readHistory(port: Port, sessionId: string): Promise<History> {
  const [entries, { runId }, originOf] = await Promise.all([
    port.call("session/getEntries", { sessionId }),
    port.call("session/get", { sessionId }),
    readOrigins(port, sessionId),
  ]);
  return { entries, isRunning: runId !== undefined, originOf };
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

export interface TellHistoryOptions extends Omit<ReplayOptions, "isRunning" | "by"> {
  readonly outbox: Pick<Outbox, "hold" | "emptied">;
  readonly update: (update: SessionUpdate) => void;
  /** The client has left the session. */
  readonly left: AbortSignal;
}

/** Tells the whole history, as fast as the client reads. Resolves with what was told, once the client has taken it. */
export async function tellHistory(history: History, options: TellHistoryOptions): Promise<Told> {
  const { entries, isRunning, originOf } = history;
  const { outbox, update, left, ...shown } = options;
  const replay = new Replay(entries, { ...shown, isRunning, by: (entry) => originOf(entry).by });
  const release = outbox.hold(entries);
  try {
    for (const each of replay.updates()) {
      update(each);
      await outbox.emptied;
      if (left.aborted) break;
    }
  } finally {
    release();
  }
  return replay.told;
}

export interface TellMissedOptions {
  readonly outbox: Pick<Outbox, "hold" | "emptied">;
  readonly live: Pick<LiveUpdates, "missed">;
  /** Tells a user's message. */
  readonly user: (message: PiMessage, origin: MessageOrigin) => void;
  /** Whether it goes on. */
  readonly isWanted: () => boolean;
}

/** Tells the entries that the client lacks, as fast as it reads. Returns whether it is known which these are. */
export async function tellMissed({ entries, originOf }: History, options: TellMissedOptions): Promise<boolean> {
  const { outbox, live, user, isWanted } = options;
  const tell: TellMissed = {
    by: (entry) => originOf(entry).by,
    user: (message, entry) => user(message, originOf(entry)),
  };
  const missed = live.missed(entries, tell);
  const release = outbox.hold(entries.entries);
  try {
    for (;;) {
      await outbox.emptied;
      if (!isWanted()) return true;
      const told = missed.next();
      if (told.done === true) return told.value;
    }
  } finally {
    release();
  }
}
