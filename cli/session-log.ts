import type { Client, LogNotification, Params } from "../client/index.ts";

/** How far behind the newest number one looks for what happened last. Numbers of high-rate events count too. */
const lookBack = 5_000;
const pageSize = 1_000;

export interface LogRange {
  /** The last number that is known already. Default: a stretch behind the newest. */
  readonly after?: number | undefined;
  /** Whether the high-rate events are wanted. */
  readonly deltas: boolean;
  readonly signal: AbortSignal;
}

/** A stretch of a session's log, and the cursor behind it. */
export interface LogPage {
  readonly notifications: readonly LogNotification[];
  readonly cursor: number;
  readonly epoch: string;
}

/** A session's log up to the present, in pages. There is always one, which may be empty. */
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
    // The daemon's own words, checked as those of a subscription are.
    const notifications = page.events.map(
      ({ method, params }) => ({ name: method, params }) as unknown as LogNotification,
    );
    yield { notifications, cursor: page.after, epoch: page.epoch };
    if (page.after >= page.cursor || page.after === after) return;
    after = page.after;
  }
}

/** The number of a notification in its session's log. */
export function seqOf({ params }: LogNotification): number {
  return "seq" in params ? params.seq : params.to;
}
