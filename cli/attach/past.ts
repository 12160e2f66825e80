import type { Client, LogNotification, PiMessage } from "../../client/index.ts";
import { logPages, seqOf } from "../session-log.ts";

/** The recent past, and where the live part begins. */
export interface Past {
  readonly notifications: readonly LogNotification[];
  /** Whether there is an earlier part. */
  readonly isCut: boolean;
  readonly after: number;
  readonly epoch: string;
}

/**
 * The newest `count` messages and tool calls of the log. A message that is still streaming belongs to the live part.
 */
export async function recentPast(client: Client, sessionId: string, count: number, signal: AbortSignal): Promise<Past> {
  let kept: LogNotification[] = [];
  let isCut = false;
  let place = { after: 0, epoch: "" };
  for await (const { notifications, cursor, epoch } of logPages(client, sessionId, { deltas: false, signal })) {
    kept.push(...notifications);
    place = { after: cursor, epoch };
    const from = startOfLast(kept, count);
    isCut ||= from > 0;
    kept = kept.slice(from);
  }
  const open = openMessage(kept);
  if (open !== undefined) {
    kept = kept.slice(0, open.index);
    place = { ...place, after: open.after };
  }
  // One line reports the missing beginning.
  const [first] = kept;
  if (first?.name === "session/gap") {
    kept = kept.slice(1);
    isCut = true;
  }
  return { notifications: count === 0 ? [] : kept, isCut, ...place };
}

/** The messages of the branch, for a session without a log, such as one that was just opened. */
export async function storedMessages(
  client: Client,
  sessionId: string,
  signal: AbortSignal,
): Promise<readonly PiMessage[]> {
  const { snapshot } = await client.call("session/subscribe", { sessionId, snapshot: true, deltas: false }, { signal });
  await client.call("session/unsubscribe", { sessionId }, { signal });
  return (snapshot?.messages ?? []) as readonly PiMessage[];
}

/** The index where the last `count` messages and tool calls begin, with the notifications before the first of them. */
function startOfLast(notifications: readonly LogNotification[], count: number): number {
  let found = 0;
  for (let index = notifications.length - 1; index >= 0; index -= 1) {
    if (isShown(notifications[index] as LogNotification)) found += 1;
    if (found > count) return index + 1;
  }
  return 0;
}

function isShown({ name, params }: LogNotification): boolean {
  return name === "session/event" && ["message_end", "tool_execution_end", "rpcd_entry"].includes(params.event.type);
}

function openMessage(notifications: readonly LogNotification[]): { index: number; after: number } | undefined {
  for (let index = notifications.length - 1; index >= 0; index -= 1) {
    const notification = notifications[index] as LogNotification;
    if (notification.name !== "session/event") continue;
    const { type } = notification.params.event;
    if (type === "message_end") return undefined;
    if (type === "message_start") return { index, after: seqOf(notification) - 1 };
  }
  return undefined;
}
