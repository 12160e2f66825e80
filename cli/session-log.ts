import type { Client, LogNotification, Params, Result } from "../client/index.ts";
import { ProtocolViolationError } from "../client/local-errors.ts";
import { type NotificationName, notifications } from "../protocol/notifications.ts";
import { createValidator } from "../protocol/validation.ts";

/** How far before the newest number to look for recent events. High-rate events have numbers, too. */
const lookBack = 5_000;
const pageSize = 1_000;
const validator = createValidator({ ignoreUnknown: true });
/** The known part of a notification of a later version. */
const numbered = { type: "object", required: ["seq"], properties: { seq: { type: "integer" } } };

export interface LogRange {
  /** The last known number. Default: a range before the newest. */
  readonly after?: number | undefined;
  /** Whether to include the high-rate events. */
  readonly deltas: boolean;
  readonly signal: AbortSignal;
}

/** A range of a session's log, and the cursor after it. */
export interface LogPage {
  readonly notifications: readonly LogNotification[];
  readonly cursor: number;
  readonly epoch: string;
}

/** A session's log up to now, in pages. Yields at least one page, which may be empty. */
export async function* logPages(client: Client, sessionId: string, range: LogRange): AsyncGenerator<LogPage> {
  const { deltas, signal } = range;
  let after = range.after;
  if (after === undefined) {
    const { cursor } = await client.call("session/get", { sessionId }, { signal });
    after = Math.max(0, cursor - lookBack);
  }
  for (;;) {
    const query: Params<"session/events"> = { sessionId, after, limit: pageSize, deltas };
    const page = await client.call("session/events", query, { signal });
    yield { notifications: page.events.map(checkedNotification), cursor: page.after, epoch: page.epoch };
    if (page.after >= page.cursor || page.after === after) return;
    after = page.after;
  }
}

/** Throws `protocol_violation` if the notification violates the protocol; additions of a later version are allowed. */
function checkedNotification({ method, params }: Result<"session/events">["events"][number]): LogNotification {
  const findings = Object.hasOwn(notifications, method)
    ? validator.notification(method as NotificationName, params)
    : validator.schema(numbered, params);
  if (findings.length > 0) throw new ProtocolViolationError(`notification ${method}`, findings);
  return { name: method, params } as unknown as LogNotification;
}

/** The number of a notification in its session's log. */
export function seqOf({ params }: LogNotification): number {
  return "seq" in params ? params.seq : params.to;
}
