import type { Params } from "../protocol/methods.ts";
import type { NotificationName, NotificationParams } from "../protocol/notifications.ts";

/** The notifications about all sessions. */
export type WatchName = Extract<
  NotificationName,
  "daemon/sessionChanged" | "daemon/deliveryUpdated" | "daemon/dialogChanged"
>;

export type WatchListener<N extends WatchName> = (params: NotificationParams<N>) => void;

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onAnswer?: (result: unknown) => void;
}

/** What the watch needs of the peer whose connection it uses. */
interface WatchPeer {
  call(method: "daemon/subscribe", params: Params<"daemon/subscribe">, options?: CallOptions): Promise<unknown>;
  call(method: "daemon/unsubscribe", params: Record<string, never>): Promise<unknown>;
  /** Calls a listener of the user. */
  shield(listener: () => void): void;
  /** They share the subscription. */
  readonly daemonFeed: { readonly isFollowed: boolean };
}

type Told = Required<Pick<Params<"daemon/subscribe">, "deliveries" | "dialogs">>;

const nothing: Told = { deliveries: false, dialogs: "off" };

/**
 * The notifications about all sessions for any number of listeners, over the one subscription that a connection can have,
 * and whether this client answers the dialogs of all sessions.
 */
export class DaemonWatch {
  readonly #peer: WatchPeer;
  readonly #listeners: { readonly [N in WatchName]: Set<WatchListener<N>> } = {
    "daemon/sessionChanged": new Set(),
    "daemon/deliveryUpdated": new Set(),
    "daemon/dialogChanged": new Set(),
  };
  #answers = false;
  /** What the daemon was told on this connection. */
  #told = nothing;

  constructor(peer: WatchPeer) {
    this.#peer = peer;
  }

  get isUsed(): boolean {
    return this.#answers || Object.values(this.#listeners).some(({ size }) => size > 0);
  }

  /** Adds a listener. Resolves with a function that removes it, when the daemon sends what it is for. */
  async add<N extends WatchName>(name: N, listener: WatchListener<N>, options?: CallOptions): Promise<() => void> {
    const listeners = this.#listeners[name] as Set<WatchListener<N>>;
    // The same function can be added twice.
    const own: WatchListener<N> = (params) => this.#peer.shield(() => listener(params));
    const leave = (): void => {
      if (listeners.delete(own)) this.#left();
    };
    listeners.add(own);
    try {
      await this.#subscribe(options);
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Resolves when the daemon knows whether this client can answer the dialogs of all sessions. */
  async setAnswers(answers: boolean, options?: CallOptions): Promise<void> {
    const former = this.#answers;
    this.#answers = answers;
    if (!this.isUsed) {
      if (former) this.#left();
      return;
    }
    try {
      await this.#subscribe(options);
    } catch (error) {
      if (answers && !former) this.#answers = false;
      throw error;
    }
  }

  receive<N extends WatchName>(name: N, params: NotificationParams<N>): void {
    for (const listener of [...(this.#listeners[name] as Set<WatchListener<N>>)]) listener(params);
  }

  /** Another connection is open. */
  resume(): void {
    this.#told = nothing;
    if (this.isUsed) this.#subscribe().catch(() => {});
  }

  #left(): void {
    if (this.isUsed || this.#peer.daemonFeed.isFollowed) {
      if (Object.keys(changed(this.#told, this.#wanted)).length > 0) this.#subscribe().catch(() => {});
      return;
    }
    this.#told = nothing;
    this.#peer.call("daemon/unsubscribe", {}).catch(() => {});
  }

  async #subscribe(options?: CallOptions): Promise<void> {
    const former = this.#told;
    const wanted = this.#wanted;
    this.#told = wanted;
    try {
      await this.#peer.call("daemon/subscribe", changed(former, wanted), options);
    } catch (error) {
      if (this.#told === wanted) this.#told = former;
      throw error;
    }
  }

  get #wanted(): Told {
    const observes = this.#listeners["daemon/dialogChanged"].size > 0;
    return {
      deliveries: this.#listeners["daemon/deliveryUpdated"].size > 0,
      dialogs: this.#answers ? "answer" : observes ? "observe" : "off",
    };
  }
}

/** Only what the daemon must be told: an older one does not know these params. */
function changed(former: Told, { deliveries, dialogs }: Told): Partial<Told> {
  return {
    ...(deliveries !== former.deliveries && { deliveries }),
    ...(dialogs !== former.dialogs && { dialogs }),
  };
}
