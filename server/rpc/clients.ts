import type { By } from "../../protocol/client-identity.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Peer } from "./call.ts";
import { type ClientLimits, ClientOwners } from "./client-owners.ts";

export interface ClientsOptions {
  readonly limits: ClientLimits;
  /** A client's last connection has gone. */
  readonly onLeft: (clientId: string) => void;
  /** This connection is known now as the client's, which may have others. */
  readonly onConnected: (clientId: string, peerId: string) => void;
}

/** Who the connections' clients say they are. One that has said nothing is known by its connection. */
export class Clients {
  readonly #options: ClientsOptions;
  readonly #byPeer = new Map<string, By>();
  readonly #peers = new Map<string, Set<string>>();
  readonly #owners: ClientOwners;
  /** Open connections that have called and not said who they are: others know them by these ids. */
  readonly #unnamed = new Set<string>();

  constructor(options: ClientsOptions) {
    this.#options = options;
    this.#owners = new ClientOwners(options.limits);
  }

  /** Who calls; undefined over HTTP, where a call has no connection. */
  by(peer: Peer | undefined): By | undefined {
    if (peer === undefined) return undefined;
    const known = this.#byPeer.get(peer.id);
    if (known === undefined && !peer.gone.aborted && !this.#unnamed.has(peer.id)) {
      this.#unnamed.add(peer.id);
      peer.gone.addEventListener("abort", () => this.#unnamed.delete(peer.id), { once: true });
    }
    return known ?? { clientId: peer.id };
  }

  /** A client that has a connection, as it says it is. */
  find(clientId: string): By | undefined {
    const [peerId] = this.#peers.get(clientId) ?? [];
    return peerId === undefined ? undefined : this.#byPeer.get(peerId);
  }

  /**
   * Throws `conflict` when the connection has said another id before, or the client is one of another token: whoever may do
   * less with its own would else act in another's name. The same goes for the id of another open connection. Throws `overloaded` when the token has too many that are connected.
   */
  hello(
    peer: Peer,
    { id, name }: { readonly id?: string | undefined; readonly name?: string | undefined },
    token = "",
  ): By {
    const known = this.#byPeer.get(peer.id);
    const clientId = id ?? known?.clientId ?? peer.id;
    if (known !== undefined && known.clientId !== clientId) {
      throw new WireError("conflict", `This connection is that of the client "${known.clientId}" already.`);
    }
    if (clientId !== peer.id && this.#unnamed.has(clientId)) {
      throw new WireError("conflict", `The id "${clientId}" is that of another connection.`);
    }
    if (known === undefined && !peer.gone.aborted) this.#owners.connected(clientId, token);
    const shown = name ?? known?.name;
    const by: By = { clientId, ...(shown === undefined ? {} : { name: shown }) };
    this.#byPeer.set(peer.id, by);
    this.#unnamed.delete(peer.id);
    if (known === undefined) this.#add(peer, clientId);
    return by;
  }

  /** A client that takes control is known even if it has said nothing: its connection's end is the lease's. */
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
