import { hash, randomBytes } from "node:crypto";
import { WireError } from "../../../protocol/errors.ts";

export interface CodesOptions {
  readonly maxWebCodes: number;
  /** Called when the last code was used or has expired. */
  readonly onEmpty: () => void;
}

interface Kept<T> {
  readonly value: T;
  readonly timer: NodeJS.Timeout;
  /** On the monotonic clock. */
  readonly expiresAt: number;
}

/** Codes that are exchanged once for a value, before they expire. Only their hashes are kept. */
export class Codes<T> {
  readonly #options: CodesOptions;
  /** By hash. A lookup by the hash of a secret tells nothing of the secret by its time. */
  readonly #codes = new Map<string, Kept<T>>();

  constructor(options: CodesOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#codes.size;
  }

  /** Returns a code of 256 random bits. Throws `overloaded`. */
  create(value: T, ttlMs: number): string {
    const { maxWebCodes } = this.#options;
    if (this.#codes.size >= maxWebCodes) {
      const [oldest] = this.#codes.values();
      const retryAfterMs = Math.max(1, Math.ceil((oldest?.expiresAt ?? 0) - performance.now()));
      throw new WireError("overloaded", `${maxWebCodes} unused codes are the limit. Use one.`, { retryAfterMs });
    }
    const code = randomBytes(32).toString("base64url");
    const key = hash("sha256", code);
    const timer = setTimeout(() => void this.#remove(key), ttlMs).unref();
    this.#codes.set(key, { value, timer, expiresAt: performance.now() + ttlMs });
    return code;
  }

  /** Uses a code up. Undefined: it does not exist, was used, or has expired. */
  take(code: string): { readonly value: T } | undefined {
    const key = hash("sha256", code);
    const found = this.#codes.get(key);
    return found !== undefined && this.#remove(key) && performance.now() < found.expiresAt
      ? { value: found.value }
      : undefined;
  }

  clear(): void {
    for (const key of [...this.#codes.keys()]) this.#remove(key);
  }

  #remove(key: string): boolean {
    const found = this.#codes.get(key);
    if (found === undefined) return false;
    clearTimeout(found.timer);
    this.#codes.delete(key);
    if (this.#codes.size === 0) this.#options.onEmpty();
    return true;
  }
}
