import { randomUUID } from "node:crypto";
import type { Result } from "../../../protocol/methods.ts";
import type { CacheBroken } from "../../../protocol/optimisation/notices.ts";

interface Loss {
  readonly count: number;
  readonly missedTokens: number;
  readonly missedUsd: number;
}

/** The reported usage of one request. Tokens. */
export interface Reported {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

const maxRecent = 100;
/** Bounds the causes, because extensions can invent section names. */
const maxCauses = 256;
const maxVolatile = 64;
const other = "section:others";

/** Cache hits and losses of one session. */
export class CacheLedger {
  /** Identifies the ledger in written entries. */
  readonly id: string = randomUUID();
  #requests = 0;
  #input = 0;
  #cacheRead = 0;
  #cacheWrite = 0;
  readonly #causes = new Map<string, Loss>();
  readonly #recent: CacheBroken[] = [];
  readonly #volatile = new Set<string>();

  answered({ input, cacheRead, cacheWrite }: Reported): void {
    this.#requests += 1;
    this.#input += input;
    this.#cacheRead += cacheRead;
    this.#cacheWrite += cacheWrite;
  }

  broken(broken: CacheBroken): void {
    const cause = this.#causes.has(broken.cause) || this.#causes.size < maxCauses ? broken.cause : other;
    const before = this.#causes.get(cause) ?? { count: 0, missedTokens: 0, missedUsd: 0 };
    this.#causes.set(cause, {
      count: before.count + 1,
      missedTokens: before.missedTokens + broken.missedTokens,
      missedUsd: before.missedUsd + broken.missedUsd,
    });
    this.#recent.push(broken);
    if (this.#recent.length > maxRecent) this.#recent.shift();
  }

  /** Records a varying section. Returns whether it is new. */
  varies(section: string): boolean {
    if (this.#volatile.has(section) || this.#volatile.size >= maxVolatile) return false;
    this.#volatile.add(section);
    return true;
  }

  report(): Omit<Result<"cache/report">, "edits"> {
    const all = this.#input + this.#cacheRead + this.#cacheWrite;
    return {
      requests: this.#requests,
      hitRate: this.#cacheRead + this.#cacheWrite === 0 ? null : this.#cacheRead / all,
      input: this.#input,
      cacheRead: this.#cacheRead,
      cacheWrite: this.#cacheWrite,
      causes: Object.fromEntries(this.#causes),
      recent: [...this.#recent],
      volatile: [...this.#volatile],
    };
  }
}
