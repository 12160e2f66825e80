import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Outbox } from "./outbox.ts";
import type { Port } from "./port.ts";
import type { LiveUpdates } from "./updates/live-updates.ts";
import type { PiMessage } from "./updates/messages.ts";
import { Replay, type ReplayOptions } from "./updates/replay.ts";
import type { Entries, Told } from "./updates/told.ts";

/** What a session has in its file. */
export interface History {
  readonly entries: Entries;
  /** Whether a run is on. */
  readonly isRunning: boolean;
}

export async function readHistory(port: Port, sessionId: string): Promise<History> {
  const [entries, { runId }] = await Promise.all([
    port.call("session/getEntries", { sessionId }),
    port.call("session/get", { sessionId }),
  ]);
  return { entries, isRunning: runId !== undefined };
}

export interface TellHistoryOptions extends Omit<ReplayOptions, "isRunning"> {
  readonly outbox: Pick<Outbox, "hold" | "emptied">;
  readonly update: (update: SessionUpdate) => void;
  /** The client has left the session. */
  readonly left: AbortSignal;
}

/** Tells the whole history, as fast as the client reads. Resolves with what was told, once the client has taken it. */
export async function tellHistory({ entries, isRunning }: History, options: TellHistoryOptions): Promise<Told> {
  const { outbox, update, left, ...shown } = options;
  const replay = new Replay(entries, { ...shown, isRunning });
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
  readonly user: (message: PiMessage) => void;
  /** Whether it goes on. */
  readonly isWanted: () => boolean;
}

/** Tells the entries that the client lacks, as fast as it reads. Returns whether it is known which these are. */
export async function tellMissed({ entries }: History, options: TellMissedOptions): Promise<boolean> {
  const { outbox, live, user, isWanted } = options;
  const missed = live.missed(entries, user);
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
