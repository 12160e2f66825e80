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
  #isTight = false;
  /** What all of them have left out, ever. */
  droppedDeltas = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What one of those that wait may hold before it makes do with less. */
  get share(): number {
    return this.#isTight ? this.#maxBytes / 2 / Math.max(1, this.#holders.size) : Number.POSITIVE_INFINITY;
  }

  /** How much one of them grows before all are added up: the more there are, the less. */
  get stepBytes(): number {
    return Math.min(maxStepBytes, Math.max(minStepBytes, this.#maxBytes / 4 / Math.max(1, this.#holders.size)));
  }

  /** The holder has to wait from now on. */
  join(holder: Holder): void {
    this.#holders.add(holder);
  }

  leave(holder: Holder): void {
    this.#holders.delete(holder);
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
      this.#holders.delete(most);
      most.giveUp();
    }
  }

  #most(): Holder | undefined {
    const tokens = new Map<Grant | undefined, { bytes: number; most: Holder }>();
    for (const holder of this.#holders) {
      const { heldBytes } = holder;
      const grant = isNamed(holder.grant) ? holder.grant : undefined;
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
