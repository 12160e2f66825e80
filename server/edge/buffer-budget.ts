import type { Grant } from "../rpc/grant.ts";
import { isNamed, namedTokensPercent } from "../rpc/shares.ts";

/** A connection whose frames wait. */
export interface Holder {
  /** Of its token. */
  readonly grant: Grant | undefined;
  /** Of what waits, whether others share it or not. */
  readonly heldBytes: number;
  /** The pieces of memory in which that lies. */
  memory(): Iterable<ArrayBufferLike>;
  /** Gives up what it holds. */
  giveUp(): void;
}

const maxStepBytes = 1024 * 1024;
/** To add up takes time. */
const minStepBytes = 64 * 1024;

/** What all connections together may have waiting. Memory counts as a whole, and once, however many share it. */
export class BufferBudget {
  readonly #maxBytes: number;
  readonly #holders = new Set<Holder>();
  /** How many holders there are of each token. */
  readonly #tokens = new Map<Grant | undefined, number>();
  #isTight = false;
  /** What all of them have left out, ever. */
  droppedDeltas = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /**
   * What a holder may hold before it makes do with less. Each token has the same share, which its own connections divide: many
   * connections of one token leave the others theirs.
   */
  shareOf({ grant }: Holder): number {
    if (!this.#isTight) return Number.POSITIVE_INFINITY;
    const ofToken = this.#tokens.get(tokenOf(grant)) ?? 1;
    return this.#maxBytes / 2 / Math.max(1, this.#tokens.size) / ofToken;
  }

  /** How much one of them grows before all are added up: the more there are, the less. */
  get stepBytes(): number {
    return Math.min(maxStepBytes, Math.max(minStepBytes, this.#maxBytes / 4 / Math.max(1, this.#holders.size)));
  }

  /** The holder has to wait from now on. */
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
   * Looks whether all of them hold too much. Then the token whose connections hold most gives up the one of them that holds
   * most: many connections of one token do not end another's. What the main token always may hold is not looked at.
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
    const kept = new Set<ArrayBufferLike>();
    for (const holder of this.#holders) for (const piece of holder.memory()) kept.add(piece);
    let bytes = 0;
    for (const piece of kept) bytes += piece.byteLength;
    return bytes;
  }
}

/** The token as which a holder counts: the main token, and calls without one, are undefined. */
function tokenOf(grant: Grant | undefined): Grant | undefined {
  return isNamed(grant) ? grant : undefined;
}
