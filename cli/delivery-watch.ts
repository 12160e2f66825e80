import { setTimeout as delay } from "node:timers/promises";
import { type Client, connect } from "../client/index.ts";
import { ConnectionClosedError, DaemonNotRunningError } from "../client/local-errors.ts";
import type { Delivery } from "../protocol/delivery.ts";
import { WireError } from "../protocol/errors.ts";
import type { SessionInfo } from "../protocol/session.ts";

export interface WatchOptions {
  readonly stateDir: string;
  /** Only this session's. Default: all sessions, new ones too. */
  readonly sessionId: string | undefined;
  readonly signal: AbortSignal;
  /** Hears of a daemon that has gone or is there again. */
  readonly note: (text: string) => void;
}

/** How long until a daemon that has gone is looked for again, and until new sessions are looked for. */
const againMs = 500;
/** How many of the newest deliveries are caught up on behind a break. */
const maxCaughtUp = 500;

/**
 * Deliveries as they change, until the signal. A delivery comes again with each change, and behind a break of the
 * connection as it is then: its history has what happened meanwhile. Throws `DaemonNotRunningError` if there is no daemon
 * at the beginning.
 */
export async function* watchDeliveries(options: WatchOptions): AsyncGenerator<Delivery> {
  const { stateDir, signal, note } = options;
  const since = Date.now();
  let isFirst = true;
  for (;;) {
    let client: Client | undefined;
    try {
      client = await connect({ stateDir, signal, reconnect: false });
      if (!isFirst) note("the daemon is there again");
      isFirst = false;
      yield* changes(client, options, since);
    } catch (error) {
      signal.throwIfAborted();
      const isGone = error instanceof ConnectionClosedError || error instanceof DaemonNotRunningError;
      if (isFirst || !isGone) throw error;
      if (error instanceof ConnectionClosedError) note("the daemon has gone; waiting for it");
      await delay(againMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    } finally {
      await client?.close();
    }
  }
}

/** What changes while one connection lasts, behind what has changed since `since`. */
async function* changes(client: Client, { sessionId, signal }: WatchOptions, since: number): AsyncGenerator<Delivery> {
  const queue = new Queue();
  const ended = new AbortController();
  const stop = AbortSignal.any([signal, ended.signal]);
  const followed = new Set<string>();
  const follow = async (id: string): Promise<void> => {
    const stream = client.session(id).deliveryChanges({ signal: stop });
    try {
      await stream.ready;
    } catch (error) {
      // A session may be closed at any time; its deliveries are in the list.
      if (error instanceof WireError && error.kind === "session_not_found") return;
      throw error;
    }
    const read = async (): Promise<void> => {
      for await (const delivery of stream) queue.push(delivery);
    };
    read().catch((error: unknown) => queue.fail(error));
  };
  const look = async (): Promise<void> => {
    const ids = sessionId === undefined ? (await client.listSessions({}, { signal: stop })).map(idOf) : [sessionId];
    const fresh = ids.filter((id) => !followed.has(id));
    for (const id of fresh) followed.add(id);
    await Promise.all(fresh.map(follow));
    if (fresh.length === 0) return;
    const query = { ...(sessionId !== undefined && { sessionId }), limit: maxCaughtUp };
    const { deliveries } = await client.listDeliveries(query, { signal: stop });
    for (const delivery of deliveries.toReversed()) if (delivery.updatedAt >= since) queue.push(delivery);
  };
  const keepLooking = async (): Promise<void> => {
    for (;;) {
      await look();
      await delay(againMs, undefined, { signal: stop });
    }
  };
  keepLooking().catch((error: unknown) => queue.fail(error));
  try {
    for (;;) yield await queue.next();
  } finally {
    ended.abort();
  }
}

function idOf({ sessionId }: SessionInfo): string {
  return sessionId;
}

/** What several readers bring for one. */
class Queue {
  readonly #items: Delivery[] = [];
  #error: { readonly error: unknown } | undefined;
  #wake = Promise.withResolvers<void>();

  push(delivery: Delivery): void {
    this.#items.push(delivery);
    this.#wake.resolve();
  }

  fail(error: unknown): void {
    this.#error ??= { error };
    this.#wake.resolve();
  }

  async next(): Promise<Delivery> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) return item;
      if (this.#error !== undefined) throw this.#error.error;
      this.#wake = Promise.withResolvers();
      await this.#wake.promise;
    }
  }
}
