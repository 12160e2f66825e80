import { setTimeout as delay } from "node:timers/promises";
import { connect } from "../client/index.ts";
import type { Delivery } from "../protocol/delivery.ts";
import { WireError } from "../protocol/errors.ts";
import type { SessionInfo } from "../protocol/session.ts";

export interface WatchOptions {
  readonly stateDir: string;
  /** Only the deliveries of this session. Default: all sessions, also new ones. */
  readonly sessionId: string | undefined;
  readonly signal: AbortSignal;
  /** Called when the daemon has gone or is available again. */
  readonly note: (text: string) => void;
}

/** The interval of looking for new sessions, and the longest delay before connecting again. */
const againMs = 500;
/** How many of the newest deliveries are checked after a lost connection. */
const maxCaughtUp = 500;

/**
 * Yields deliveries as they change, until the signal. Each change yields the delivery again; after a lost connection it
 * is yielded with its current state, and its history has the steps between. Throws `DaemonNotRunningError` if there is
 * no daemon at the beginning, and the error that ends the client.
 */
export async function* watchDeliveries({ stateDir, sessionId, signal, note }: WatchOptions): AsyncGenerator<Delivery> {
  const since = Date.now();
  const reconnect = { maxDelayMs: againMs, giveUpAfterMs: Number.POSITIVE_INFINITY };
  const client = await connect({ stateDir, start: false, signal, reconnect });
  const queue = new Queue();
  const ended = new AbortController();
  const stop = AbortSignal.any([signal, ended.signal]);
  const fail = (error: unknown): void => queue.fail(error);
  const followed = new Set<string>();
  const follow = async (id: string): Promise<void> => {
    // The list has the changes that were missed; it is fetched after each lost connection.
    const stream = client.session(id).deliveryChanges({ signal: stop, onGap: () => {} });
    const read = async (): Promise<void> => {
      for await (const delivery of stream) queue.push(delivery);
    };
    read().catch(unlessClosed(fail));
    await stream.ready.catch(unlessClosed(fail));
  };
  const catchUp = async (): Promise<void> => {
    const query = { ...(sessionId !== undefined && { sessionId }), limit: maxCaughtUp };
    const { deliveries } = await client.listDeliveries(query, { signal: stop });
    for (const delivery of deliveries.toReversed()) if (delivery.updatedAt >= since) queue.push(delivery);
  };
  const keepLooking = async (): Promise<void> => {
    for (;;) {
      const ids = sessionId === undefined ? (await client.listSessions({}, { signal: stop })).map(idOf) : [sessionId];
      const fresh = ids.filter((id) => !followed.has(id));
      for (const id of fresh) followed.add(id);
      await Promise.all(fresh.map(follow));
      if (fresh.length > 0) await catchUp();
      await delay(againMs, undefined, { signal: stop });
    }
  };
  client.onConnection((event) => {
    if (event.kind === "lost" && event.attempt === 1) note("the daemon is gone; waiting for it");
    if (event.kind !== "connected") return;
    note("the daemon is available again");
    catchUp().catch(fail);
  });
  keepLooking().catch(fail);
  try {
    for (;;) yield await queue.next();
  } finally {
    ended.abort();
    await client.close();
  }
}

/** A session may be closed at any time; the list has its deliveries. */
function unlessClosed(fail: (error: unknown) => void): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof WireError && error.kind === "session_not_found")) fail(error);
  };
}

function idOf({ sessionId }: SessionInfo): string {
  return sessionId;
}

/** Merges the results of several readers for one. */
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
