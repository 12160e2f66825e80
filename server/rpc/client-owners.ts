import { WireError } from "../../protocol/errors.ts";

export interface ClientLimits {
  /** Ids of one token: of its clients that are connected, and of those that have gone and keep their id. */
  readonly maxClientsPerToken: number;
  /** Ids of clients that have gone, of all tokens. The token that has most loses its oldest. */
  readonly maxGoneClients: number;
}

interface Owned {
  readonly connected: Set<string>;
  /** In the order in which they have gone. */
  readonly gone: Set<string>;
}

/**
 * Which token each client's id is of. As long as a client is connected nobody else can have its id; when it has gone, only
 * its own token, or who has more ids than any other, has it forgotten.
 */
export class ClientOwners {
  readonly #limits: ClientLimits;
  /** By client. */
  readonly #tokens = new Map<string, string>();
  readonly #owned = new Map<string, Owned>();
  #gone = 0;

  constructor(limits: ClientLimits) {
    this.#limits = limits;
  }

  /**
   * A client has a connection. Throws `conflict` when its id is another token's, and `overloaded` when so many of this one
   * are connected.
   */
  connected(clientId: string, token: string): void {
    const owner = this.#tokens.get(clientId);
    if (owner !== undefined && owner !== token) {
      throw new WireError("conflict", `The client "${clientId}" has come with another token.`);
    }
    const { maxClientsPerToken } = this.#limits;
    const owned = this.#owned.get(token) ?? { connected: new Set(), gone: new Set() };
    if (owner === undefined && owned.connected.size + owned.gone.size >= maxClientsPerToken && !this.#forget(owned)) {
      const message = `${maxClientsPerToken} clients of this token are connected, which is the limit.`;
      throw new WireError("overloaded", message, { retryAfterMs: 10_000, maxClientsPerToken });
    }
    if (owned.gone.delete(clientId)) this.#gone -= 1;
    owned.connected.add(clientId);
    this.#owned.set(token, owned);
    this.#tokens.set(clientId, token);
  }

  /** The last connection of a client has gone. */
  left(clientId: string): void {
    const owned = this.#owned.get(this.#tokens.get(clientId) ?? "");
    if (owned?.connected.delete(clientId) !== true) return;
    owned.gone.add(clientId);
    this.#gone += 1;
    if (this.#gone > this.#limits.maxGoneClients) this.#forgetOfMost();
  }

  #forgetOfMost(): void {
    const [most] = [...this.#owned].sort(([, a], [, b]) => b.gone.size - a.gone.size);
    if (most === undefined) return;
    const [token, owned] = most;
    this.#forget(owned);
    if (owned.gone.size === 0 && owned.connected.size === 0) this.#owned.delete(token);
  }

  /** Forgets the client that has been gone for longest. Gives whether there was one. */
  #forget({ gone }: Owned): boolean {
    const [oldest] = gone;
    if (oldest === undefined) return false;
    gone.delete(oldest);
    this.#tokens.delete(oldest);
    this.#gone -= 1;
    return true;
  }
}
