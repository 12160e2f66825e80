import type { Client, LogNotification, PiMessage, SessionInfo } from "../../client/index.ts";
import { logPages, seqOf } from "../session-log.ts";
import { Usage } from "./usage.ts";

/** How far before the newest number to look for what is shown. High-rate events have numbers, too. */
const lookBack = 5_000;
/** The same for the start of a run, each time further. */
const lookFurther = 50_000;

/** The recent past, and where the live part begins. */
export interface Past {
  readonly notifications: readonly LogNotification[];
  /** The usage, before the first notification, of the run that was active then. */
  readonly usage: Usage;
  /** Whether there is an earlier part. */
  readonly isCut: boolean;
  readonly after: number;
  readonly epoch: string;
}

/**
 * The newest `count` messages and tool calls of the log. A message that is still streaming belongs to the live part.
 */
export async function recentPast(
  client: Client,
  { sessionId, cursor: newest }: Pick<SessionInfo, "sessionId" | "cursor">,
  count: number,
  signal: AbortSignal,
): Promise<Past> {
  const start = Math.max(0, newest - lookBack);
  const usage = new RunUsage();
  let kept: LogNotification[] = [];
  let isCut = start > 0;
  let place = { after: 0, epoch: "" };
  for await (const page of logPages(client, sessionId, { after: start, deltas: false, signal })) {
    kept.push(...page.notifications);
    place = { after: page.cursor, epoch: page.epoch };
    const from = startOfLast(kept, count);
    isCut ||= from > 0;
    for (const notification of kept.slice(0, from)) usage.add(notification);
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
  const shown = count === 0 ? [] : kept;
  if (count === 0) for (const notification of kept) usage.add(notification);
  const isWhole = usage.current.isWhole || shown.find(({ name }) => name.startsWith("run/"))?.name === "run/started";
  if (!isWhole && start > 0) await usage.lookBefore(client, { sessionId, start, signal });
  return { notifications: shown, usage: usage.current, isCut, ...place };
}

/** Sums the usage of the run that a range of the log ends in. */
class RunUsage {
  #messages: unknown[] = [];
  #isWhole = false;

  get current(): Usage {
    const sum = new Usage(this.#isWhole);
    for (const usage of this.#messages) sum.add(usage);
    return sum;
  }

  add({ name, params }: LogNotification): void {
    if (name === "run/started") {
      this.#messages = [];
      this.#isWhole = true;
    } else if (name === "session/event") {
      const { message } = params.event as { readonly message?: PiMessage };
      if (params.event.type === "message_end" && message?.role === "assistant") this.#messages.push(message["usage"]);
    }
  }

  /** Adds what the run used before `start`, back to where it began, if the log still has that. */
  async lookBefore(
    client: Client,
    { sessionId, start, signal }: { readonly sessionId: string; readonly start: number; readonly signal: AbortSignal },
  ): Promise<void> {
    for (let from = start; from > 0; ) {
      from = Math.max(0, from - lookFurther);
      const earlier = new RunUsage();
      pages: for await (const page of logPages(client, sessionId, { after: from, deltas: false, signal })) {
        for (const notification of page.notifications) {
          if (seqOf(notification) > start) break pages;
          earlier.add(notification);
        }
      }
      if (!earlier.#isWhole && from > 0) continue;
      this.#messages.unshift(...earlier.#messages);
      this.#isWhole = earlier.#isWhole;
      return;
    }
  }
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
