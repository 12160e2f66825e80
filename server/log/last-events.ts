import { isRecord } from "../../protocol/objects.ts";
import type { PendingItem } from "../../protocol/pending.ts";
import type { PiEvent } from "../pi/records.ts";
import type { EventLog } from "./event-log.ts";

/** What the newest events of a log say of a child that goes on without its former daemon. */
export interface LastEvents {
  /** The last assistant message of the run. */
  readonly message?: PiEvent | undefined;
  /** The last `agent_start` or `agent_end`. */
  readonly agent?: PiEvent | undefined;
  /** pi's `agent_settled` after it, in the run. */
  readonly settled?: PiEvent | undefined;
  readonly compaction?: PiEvent | undefined;
  readonly queue?: PiEvent | undefined;
  /** Background work of extensions. */
  readonly pending: readonly PendingItem[];
}

type Found = { -readonly [K in keyof LastEvents]?: LastEvents[K] };

export interface LookedFor {
  /** Later notifications are not looked at. */
  readonly upTo: number;
  /** The child: it began without any of these. */
  readonly generation: number;
  /** The run that goes on. */
  readonly runId: string | undefined;
}

/** How many stored notifications are looked at. */
const maxLooks = 20_000;

const heads = [
  '"type":"message_end"',
  '"type":"agent_start"',
  '"type":"agent_end"',
  '"type":"agent_settled"',
  '"type":"compaction_start"',
  '"type":"compaction_end"',
  '"type":"queue_update"',
  '"method":"run/started"',
  '"method":"pending/updated"',
].map((head) => Buffer.from(head));
const eventHead = Buffer.from('"method":"session/event"');

/** Bytes at the beginning of a notification that have its type. */
const headBytes = 400;

/** Reads the log backwards until everything is found, or to the beginning of the child. */
export function lastEvents(log: EventLog, { upTo, generation, runId }: LookedFor): LastEvents {
  const found: Found = {};
  const ofChild = Buffer.from(`"generation":${generation},`);
  let looks = 0;
  let isInRun = runId !== undefined;
  log.lookBack((frame) => {
    looks += 1;
    if (looks > maxLooks) return true;
    const start = frame.subarray(0, headBytes);
    if (start.includes(eventHead) && !start.includes(ofChild)) return true;
    if (!heads.some((head) => start.includes(head))) return false;
    const { method, params } = JSON.parse(frame.toString("utf8")) as {
      method: string;
      params: Record<string, unknown>;
    };
    if (Number(params["seq"]) > upTo) return false;
    // The `agent_start` that began the run is before it.
    if (method === "run/started" && params["runId"] === runId) isInRun = false;
    if (method === "pending/updated") found.pending ??= params["pending"] as readonly PendingItem[];
    const { event } = params;
    if (method === "session/event" && isRecord(event)) take(found, event as PiEvent, isInRun);
    const { agent, compaction, queue, pending } = found;
    const hasAll = compaction !== undefined && queue !== undefined && pending !== undefined;
    return hasAll && !isInRun && (runId === undefined || agent !== undefined);
  });
  return { ...found, pending: found.pending ?? [] };
}

function take(found: Found, event: PiEvent, isInRun: boolean): void {
  switch (event.type) {
    case "message_end": {
      const { message } = event;
      if (isInRun && isRecord(message) && message["role"] === "assistant") found.message ??= event;
      break;
    }
    case "agent_start":
    case "agent_end":
      found.agent ??= event;
      break;
    case "agent_settled":
      if (isInRun && found.agent === undefined) found.settled ??= event;
      break;
    case "compaction_start":
    case "compaction_end":
      found.compaction ??= event;
      break;
    case "queue_update":
      found.queue ??= event;
      break;
    default:
  }
}
