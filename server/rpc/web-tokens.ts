import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Capability } from "../../protocol/capability.ts";
import { WireError } from "../../protocol/errors.ts";
import type { TokenInfo } from "../../protocol/token-methods.ts";
import { Grant } from "./grant.ts";

export interface WebTokensOptions {
  readonly limits: {
    readonly maxWebTokens: number;
    /** A token ends this long after its last connection. */
    readonly webTokenIdleMs: number;
  };
  /** Whether another token has this name. */
  readonly isTaken: (name: string) => boolean;
}

/** Calls the function after the answer to the current call has been written. */
type Afterwards = (then: () => void) => void;

interface Entry {
  readonly hash: Buffer;
  readonly grant: Grant;
  readonly info: Omit<TokenInfo, "lastUsedAt">;
  connections: number;
  lastUsedAt: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * The tokens of browsers, for the web console's own listener. They are kept in memory alone, as hashes, and end with this
 * daemon: one that outlived it would go to the program that gets its port next.
 */
export class WebTokens {
  readonly #options: WebTokensOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(grant: Grant) => void>();
  #named = 0;

  constructor(options: WebTokensOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  list(): readonly TokenInfo[] {
    return Array.from(this.#entries.values(), ({ info, lastUsedAt }) => ({ ...info, lastUsedAt }));
  }

  /** A name for a further token, which no other one gets. */
  nextName(): string {
    do this.#named += 1;
    while (this.#options.isTaken(`web-${this.#named}`));
    return `web-${this.#named}`;
  }

  /** Returns the secret. Above the limit, the token without a connection that was used least recently ends. Throws `overloaded` if there is none. */
  create(named: string, capabilities: readonly Capability[]): string {
    if (this.#entries.size >= this.#options.limits.maxWebTokens) this.#endOldest();
    // A user may have given the name to another token.
    const name = this.#options.isTaken(named) ? this.nextName() : named;
    const token = randomBytes(32).toString("base64url");
    const createdAt = Date.now();
    const entry: Entry = {
      hash: hashOf(token),
      grant: new Grant({ name, keys: `${name} ${createdAt}`, capabilities }),
      info: { name, capabilities: [...capabilities], createdAt },
      connections: 0,
      lastUsedAt: createdAt,
      timer: undefined,
    };
    this.#entries.set(name, entry);
    this.#rest(entry);
    return token;
  }

  /** Undefined: the text is not a valid token. */
  find(token: string): Grant | undefined {
    const presented = hashOf(token);
    let found: Entry | undefined;
    // Compares with all, so that the time does not depend on the token.
    for (const entry of this.#entries.values()) if (timingSafeEqual(presented, entry.hash)) found = entry;
    if (found === undefined) return undefined;
    // Timers do not run while the machine sleeps.
    if (found.connections === 0 && Date.now() - found.lastUsedAt >= this.#options.limits.webTokenIdleMs) {
      this.end(found.info.name);
      return undefined;
    }
    found.lastUsedAt = Date.now();
    return found.grant;
  }

  /** A connection of the token was opened (1) or has ended (-1). */
  connected({ name }: Grant, change: 1 | -1): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    entry.connections += change;
    entry.lastUsedAt = Date.now();
    clearTimeout(entry.timer);
    if (entry.connections === 0) this.#rest(entry);
  }

  /** Ends a token. Its connections are closed by `afterwards`. Default: at once. */
  end(name: string, afterwards: Afterwards = (then) => then()): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    clearTimeout(entry.timer);
    this.#entries.delete(name);
    entry.grant.end();
    afterwards(() => {
      for (const listener of this.#listeners) listener(entry.grant);
    });
  }

  endAll(): void {
    for (const name of [...this.#entries.keys()]) this.end(name);
  }

  /** Calls the listener with each ended grant, until the returned function is called. */
  onEnded(listener: (grant: Grant) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #rest(entry: Entry): void {
    entry.timer = setTimeout(() => this.end(entry.info.name), this.#options.limits.webTokenIdleMs).unref();
  }

  #endOldest(): void {
    const [oldest] = [...this.#entries.values()]
      .filter(({ connections }) => connections === 0)
      .sort((a, b) => a.lastUsedAt - b.lastUsedAt);
    if (oldest === undefined) {
      const message = `${this.#options.limits.maxWebTokens} browsers are connected, which is the limit. Close one.`;
      throw new WireError("overloaded", message, { retryAfterMs: 60_000 });
    }
    this.end(oldest.info.name);
  }
}

function hashOf(token: string): Buffer {
  return hash("sha256", token, "buffer");
}
