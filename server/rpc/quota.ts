import { WireError } from "../../protocol/errors.ts";
import { MAIN_TOKEN } from "../../protocol/token-methods.ts";
import type { Grant } from "./grant.ts";

/** Default share of all named tokens in a limit, in percent. */
export const namedTokensPercent = 75;

export interface QuotaOptions {
  /** The counted thing, as it follows a number: "streams of events". */
  readonly what: string;
  readonly max: number;
  /** For one named token. */
  readonly maxPerToken: number;
  /** Share of all named tokens in `max`. The rest is reserved for the main token. */
  readonly namedTokensPercent: number;
}

/**
 * A limit that all tokens share, so that no named token can use it up, nor can all of them together. A token that holds
 * nothing gets one thing of any size, unless other tokens have reached the limit.
 */
export class Quota {
  readonly #options: QuotaOptions;
  readonly #maxNamed: number;
  readonly #byToken = new Map<Grant, number>();
  /** Errors are created once: creating one takes longer than the rest of a refused call. */
  readonly #fullForAll: WireError;
  readonly #fullForNamed: WireError;
  readonly #fullForToken = new WeakMap<Grant, WireError>();
  #all = 0;
  #named = 0;

  constructor(options: QuotaOptions) {
    this.#options = options;
    this.#maxNamed = Math.floor((options.max * options.namedTokensPercent) / 100);
    this.#fullForAll = this.#full(options.max, "all tokens");
    this.#fullForNamed = this.#full(this.#maxNamed, "all named tokens");
  }

  /** How much all peers have together. */
  get taken(): number {
    return this.#all;
  }

  /** Returns `overloaded` if this amount more would exceed a limit. */
  refusal(grant: Grant | undefined, amount: number): WireError | undefined {
    const { max, maxPerToken } = this.#options;
    if (isOver(this.#all, amount, max)) return this.#fullForAll;
    if (!isNamed(grant)) return undefined;
    if (isOver(this.#byToken.get(grant) ?? 0, amount, maxPerToken)) return this.#fullFor(grant);
    return isOver(this.#named, amount, this.#maxNamed) ? this.#fullForNamed : undefined;
  }

  /** Takes an amount, or returns it if it is negative. */
  add(grant: Grant | undefined, amount: number): void {
    this.#all += amount;
    if (!isNamed(grant)) return;
    this.#named += amount;
    const own = (this.#byToken.get(grant) ?? 0) + amount;
    if (own === 0) this.#byToken.delete(grant);
    else this.#byToken.set(grant, own);
  }

  #fullFor(grant: Grant): WireError {
    const known = this.#fullForToken.get(grant);
    if (known !== undefined) return known;
    const full = this.#full(this.#options.maxPerToken, `the token "${grant.name}"`);
    this.#fullForToken.set(grant, full);
    return full;
  }

  #full(max: number, whose: string): WireError {
    const message = `${max} ${this.#options.what} is the limit of ${whose}.`;
    return new WireError("overloaded", message, { retryAfterMs: 1_000 });
  }
}

export function isNamed(grant: Grant | undefined): grant is Grant {
  return grant !== undefined && grant.name !== MAIN_TOKEN;
}

function isOver(taken: number, amount: number, max: number): boolean {
  return taken > 0 && taken + amount > max;
}
