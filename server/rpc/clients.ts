import type { By } from "../../protocol/client-identity.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Peer } from "./call.ts";

export interface ClientLimits {
  /** Client ids of one token: connected clients, and disconnected ones that keep their id. */
  readonly maxClientsPerToken: number;
  /** Ids of disconnected clients, of all tokens. The token with the most loses its oldest. */
  readonly maxGoneClients: number;
}

export interface ClientsOptions {
  readonly limits: ClientLimits;
  /** A client's last connection has ended. */
  readonly onLeft: (clientId: string) => void;
  /** This connection was identified as one of the client's. */
  readonly onConnected: (clientId: string, peerId: string) => void;
}

/** The clients of all connections. A connection without `daemon/hello` is a client of its own. */
export class Clients {
  readonly #options: ClientsOptions;
  readonly #byPeer = new Map<string, By>();
  readonly #peers = new Map<string, Set<string>>();
  readonly #owners: ClientOwners;
  /** Open connections that have called without `daemon/hello`: other clients know them by these ids. */
  readonly #unnamed = new Set<string>();

  constructor(options: ClientsOptions) {
    this.#options = options;
    this.#owners = new ClientOwners(options.limits);
  }

  /** The client of a connection that has called. */
  by(peer: Peer): By {
    const known = this.#byPeer.get(peer.id);
    if (known === undefined && !peer.gone.aborted && !this.#unnamed.has(peer.id)) {
      this.#unnamed.add(peer.id);
      peer.gone.addEventListener("abort", () => this.#unnamed.delete(peer.id), { once: true });
    }
    return known ?? { clientId: peer.id };
  }

  /** A connected client. */
  find(clientId: string): By | undefined {
    const [peerId] = this.#peers.get(clientId) ?? [];
    return peerId === undefined ? undefined : this.#byPeer.get(peerId);
  }

  /**
   * Identifies a connection's client. Throws `conflict` if the connection has another id already, if the id belongs to
   * a client of another token, because a client with fewer rights could otherwise act in its name, or if it is the id of
   * another open connection. Throws `overloaded` if too many clients of the token are connected.
   */
  hello(
    peer: Peer,
    { id, name }: { readonly id?: string | undefined; readonly name?: string | undefined },
    token = "",
  ): By {
    const known = this.#byPeer.get(peer.id);
    const clientId = id ?? known?.clientId ?? peer.id;
    if (known !== undefined && known.clientId !== clientId) {
      throw new WireError("conflict", `This connection belongs to the client "${known.clientId}" already.`);
    }
    if (clientId !== peer.id && this.#unnamed.has(clientId)) {
      throw new WireError("conflict", `The id "${clientId}" belongs to another connection.`);
    }
    if (known === undefined && !peer.gone.aborted) this.#owners.connected(clientId, token);
    const shown = name ?? known?.name;
    const by: By = { clientId, ...(shown === undefined ? {} : { name: shown }) };
    this.#byPeer.set(peer.id, by);
    this.#unnamed.delete(peer.id);
    if (known === undefined) this.#add(peer, clientId);
    return by;
  }

  /** Registers a client that takes control, also without `daemon/hello`: its lease ends with its connection. */
  remember(peer: Peer, token?: string): By {
    return this.#byPeer.get(peer.id) ?? this.hello(peer, {}, token);
  }

  #add(peer: Peer, clientId: string): void {
    if (peer.gone.aborted) {
      this.#byPeer.delete(peer.id);
      return;
    }
    const peers = this.#peers.get(clientId) ?? new Set();
    this.#peers.set(clientId, peers.add(peer.id));
    peer.gone.addEventListener("abort", () => this.#remove(peer.id, clientId), { once: true });
    this.#options.onConnected(clientId, peer.id);
  }

  #remove(peerId: string, clientId: string): void {
    this.#byPeer.delete(peerId);
    const peers = this.#peers.get(clientId);
    peers?.delete(peerId);
    if (peers === undefined || peers.size > 0) return;
    this.#peers.delete(clientId);
    this.#owners.left(clientId);
    this.#options.onLeft(clientId);
  }
}

interface Owned {
  readonly connected: Set<string>;
  /** The one that disconnected first comes first. */
  readonly gone: Set<string>;
}

/**
 * The token of each client id. No other token can use the id of a connected client. A disconnected client keeps its id
 * until its own token needs the place, or all tokens together have too many and its token has the most.
 */
class ClientOwners {
  readonly #limits: ClientLimits;
  /** By client. */
  readonly #tokens = new Map<string, string>();
  readonly #owned = new Map<string, Owned>();
  #gone = 0;

  constructor(limits: ClientLimits) {
    this.#limits = limits;
  }

  /**
   * A client has a connection. Throws `conflict` if its id belongs to another token, and `overloaded` if too many clients
   * of this token are connected.
   */
  connected(clientId: string, token: string): void {
    const owner = this.#tokens.get(clientId);
    if (owner !== undefined && owner !== token) {
      throw new WireError("conflict", `The client "${clientId}" belongs to another token.`);
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

  /** The last connection of a client has ended. */
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

  /** Forgets the client that disconnected first. Returns whether there was one. */
  #forget({ gone }: Owned): boolean {
    const [oldest] = gone;
    if (oldest === undefined) return false;
    gone.delete(oldest);
    this.#tokens.delete(oldest);
    this.#gone -= 1;
    return true;
  }
}
