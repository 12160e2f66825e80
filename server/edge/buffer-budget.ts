import type { Grant } from "../rpc/grant.ts";
import { isNamed, namedTokensPercent } from "../rpc/quota.ts";

/** A piece of memory; what holders share is the same object. */
export type Memory = Pick<ArrayBufferLike, "byteLength">;

/** A connection with waiting frames. */
export interface Holder {
  /** The grant of its token. */
  readonly grant: Grant | undefined;
  /** The bytes of its waiting frames, shared ones included. */
  readonly heldBytes: number;
  /** The memory that these frames keep alive. */
  memory(): Iterable<Memory>;
  /** Discards the waiting frames. */
  giveUp(): void;
}

const maxStepBytes = 1024 * 1024;
/** A lower bound, because adding up takes time. */
const minStepBytes = 64 * 1024;

/**
 * The bound on the frames that wait for all connections. It is not a quota, which counts amounts and refuses: connections
 * share memory, which counts once, and a full budget takes frames from the connection that holds most.
 */
export class BufferBudget {
  readonly #maxBytes: number;
  readonly #holders = new Set<Holder>();
  /** The number of holders of each token. */
  readonly #tokens = new Map<Grant | undefined, number>();
  #isTight = false;
  /** The number of deltas that all connections have lost. */
  droppedDeltas = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * Returns how many bytes a holder may hold before it must merge or drop deltas. Each token has the same share, which its
   * connections divide, so that many connections of one token leave the others their share.
   */
  shareOf({ grant }: Holder): number {
    if (!this.#isTight) return Number.POSITIVE_INFINITY;
    const ofToken = this.#tokens.get(tokenOf(grant)) ?? 1;
    return this.#maxBytes / 2 / Math.max(1, this.#tokens.size) / ofToken;
  }

  /** How many bytes a holder may grow before all holders are added up: fewer if there are more holders. */
  get stepBytes(): number {
    return Math.min(maxStepBytes, Math.max(minStepBytes, this.#maxBytes / 4 / Math.max(1, this.#holders.size)));
  }

  /** Adds a holder, whose frames have to wait. */
  join(holder: Holder): void {
    if (this.#holders.has(holder)) return;
    this.#holders.add(holder);
    const token = tokenOf(holder.grant);
    this.#tokens.set(token, (this.#tokens.get(token) ?? 0) + 1);
  }

  leave(holder: Holder): void {
    if (!this.#holders.delete(holder)) return;
    const token = tokenOf(holder.grant);
    const left = (this.#tokens.get(token) ?? 1) - 1;
    if (left === 0) this.#tokens.delete(token);
    else this.#tokens.set(token, left);
  }

  /**
   * Adds up all holders. If they hold too much, the token that holds most loses its largest holder, so that many
   * connections of one token do not end those of another. The main token's own part is exempt.
   */
  enforce(): void {
    for (;;) {
      const bytes = this.#keptBytes();
      this.#isTight = bytes > this.#maxBytes / 2;
      if (bytes <= this.#maxBytes) return;
      const most = this.#most();
      if (most === undefined) return;
      this.leave(most);
      most.giveUp();
    }
  }

  #most(): Holder | undefined {
    const tokens = new Map<Grant | undefined, { bytes: number; most: Holder }>();
    for (const holder of this.#holders) {
      const { heldBytes } = holder;
      const grant = tokenOf(holder.grant);
      const token = tokens.get(grant);
      if (token === undefined) tokens.set(grant, { bytes: heldBytes, most: holder });
      else {
        token.bytes += heldBytes;
        if (heldBytes > token.most.heldBytes) token.most = holder;
      }
    }
    const main = tokens.get(undefined);
    const mainBytes = (this.#maxBytes * (100 - namedTokensPercent)) / 100;
    if (main !== undefined && main.bytes <= mainBytes && tokens.size > 1) tokens.delete(undefined);
    return [...tokens.values()].sort((a, b) => b.bytes - a.bytes)[0]?.most;
  }

  #keptBytes(): number {
    const kept = new Set<Memory>();
    for (const holder of this.#holders) for (const piece of holder.memory()) kept.add(piece);
    let bytes = 0;
    for (const piece of kept) bytes += piece.byteLength;
    return bytes;
  }
}

/** Returns the grant by which a holder is counted: undefined for the main token and for no token. */
function tokenOf(grant: Grant | undefined): Grant | undefined {
  return isNamed(grant) ? grant : undefined;
}
