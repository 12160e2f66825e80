import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { capabilities } from "../../protocol/capability.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import { MAIN_TOKEN, type TokenInfo } from "../../protocol/token-methods.ts";
import { readPrivate, writePrivate } from "../lib/private-file.ts";
import { StartError } from "../lib/start-error.ts";
import { Grant } from "./grant.ts";

/** A named token, as its file has it. */
type StoredToken = Omit<TokenInfo, "lastUsedAt"> & { readonly hash: string };

/** What the edge needs to know of tokens. */
export interface TokenSource {
  /** What a token allows; undefined: it is none. */
  find(token: string): Grant | undefined;
  /** Calls this with each grant that has ended, when the answer to the call that ended it has been written. */
  onEnded(listener: (grant: Grant) => void): void;
}

export interface TokensOptions {
  /** The token in `daemon.json`. */
  readonly main: string;
  /** Puts another one in its place, for the next daemons and for clients. */
  readonly setMain: (token: string) => void;
  /** Where the named tokens are kept. */
  readonly file: string;
  readonly maxTokens: number;
}

interface Entry {
  /** In base64, as bytes: what is compared. */
  readonly hash: Buffer;
  readonly grant: Grant;
  readonly stored: StoredToken;
  lastUsedAt?: number;
}

/** Of a SHA-256 in base64. */
const hashLength = 44;

/** 256 bits of the system's random numbers. */
function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/** The daemon's token and the named ones: who has which, as hashes. */
type Afterwards = (then: () => void) => void;

export class Tokens implements TokenSource {
  readonly #options: TokensOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(grant: Grant) => void>();
  /** The hash of the token that is looked for. */
  readonly #presented = Buffer.alloc(hashLength);

  /** Throws a {@link StartError} `token_unusable`. */
  constructor(options: TokensOptions) {
    this.#options = options;
    const main = {
      name: MAIN_TOKEN,
      capabilities: [...capabilities],
      createdAt: Date.now(),
      hash: hashOf(options.main),
    };
    for (const stored of [main, ...readTokens(options.file)]) this.#put(stored);
  }

  find(token: string): Grant | undefined {
    // In one call, and as text into memory that is there: an object for each hash costs four times as much.
    this.#presented.write(hash("sha256", token, "base64"), "latin1");
    let found: Entry | undefined;
    // All are compared, whichever it is.
    for (const entry of this.#entries.values()) if (timingSafeEqual(this.#presented, entry.hash)) found = entry;
    if (found !== undefined) found.lastUsedAt = Date.now();
    return found?.grant;
  }

  onEnded(listener: (grant: Grant) => void): void {
    this.#listeners.add(listener);
  }

  list(): Result<"token/list"> {
    return { tokens: [...this.#entries.values()].map(infoOf) };
  }

  /** Throws `conflict`, `overloaded`, `invalid_params`, `store_failed`. */
  create({ name, capabilities: allowed, labels, cwds }: Params<"token/create">): Result<"token/create"> {
    if (this.#entries.has(name)) throw new WireError("conflict", `There is a token "${name}" already.`, { name });
    const { maxTokens } = this.#options;
    if (this.#entries.size > maxTokens) {
      throw new WireError("overloaded", `There are ${maxTokens} named tokens, which is the limit. Revoke some.`, {
        retryAfterMs: 60_000,
      });
    }
    if (allowed.includes("admin") && (labels ?? cwds) !== undefined) {
      throw new WireError("invalid_params", "A token that allows admin cannot be limited: it could make others.", {
        findings: [{ path: "/capabilities", message: "must not have admin where labels or cwds are given" }],
      });
    }
    const token = newToken();
    const entry = entryOf({
      name,
      capabilities: capabilities.filter((capability) => allowed.includes(capability)),
      ...(labels === undefined ? {} : { labels }),
      ...(cwds === undefined ? {} : { cwds: cwds.map(withoutLinks) }),
      createdAt: Date.now(),
      hash: hashOf(token),
    });
    this.#store([...this.#entries.values(), entry]);
    this.#entries.set(name, entry);
    return { ...infoOf(entry), token };
  }

  /** As {@link revoke}. Throws `token_not_found`, `store_failed`. */
  rotate(name: string, afterwards: Afterwards): Result<"token/rotate"> {
    const former = this.#get(name);
    const token = newToken();
    const entry = entryOf({ ...former.stored, hash: hashOf(token), rotatedAt: Date.now() });
    if (name === MAIN_TOKEN) stored(() => this.#options.setMain(token));
    else this.#store([...this.#entries.values()].map((other) => (other === former ? entry : other)));
    this.#entries.set(name, entry);
    this.#end(former.grant, afterwards);
    return { ...infoOf(entry), token };
  }

  /**
   * `afterwards` is called with what closes the token's connections: to be done when the call has been answered, which may have
   * come over one of them. Throws `token_not_found`, `forbidden`, `store_failed`.
   */
  revoke(name: string, afterwards: Afterwards): void {
    const former = this.#get(name);
    if (name === MAIN_TOKEN) {
      throw new WireError(
        "forbidden",
        "The daemon's own token cannot be revoked, since its clients need one. Rotate it.",
      );
    }
    this.#store([...this.#entries.values()].filter((other) => other !== former));
    this.#entries.delete(name);
    this.#end(former.grant, afterwards);
  }

  #get(name: string): Entry {
    const entry = this.#entries.get(name);
    if (entry !== undefined) return entry;
    throw new WireError("token_not_found", `There is no token "${name}".`, { name });
  }

  #put(token: StoredToken): void {
    this.#entries.set(token.name, entryOf(token));
  }

  #store(entries: readonly Entry[]): void {
    const tokens = entries.map((entry) => entry.stored).filter(({ name }) => name !== MAIN_TOKEN);
    stored(() => writePrivate(this.#options.file, `${JSON.stringify({ tokens }, null, 2)}\n`));
  }

  /** It allows nothing from now on. */
  #end(grant: Grant, afterwards: Afterwards): void {
    grant.end();
    afterwards(() => {
      for (const listener of this.#listeners) listener(grant);
    });
  }
}

function entryOf(token: StoredToken): Entry {
  const { name, createdAt } = token;
  const keys = name === MAIN_TOKEN ? "" : `${name} ${createdAt}`;
  return {
    hash: Buffer.from(Buffer.from(token.hash, "hex").toString("base64"), "latin1"),
    grant: new Grant({ ...token, keys }),
    stored: token,
  };
}

function infoOf({ stored: { hash: _, ...info }, lastUsedAt }: Entry): TokenInfo {
  return { ...info, ...(lastUsedAt === undefined ? {} : { lastUsedAt }) };
}

function stored(write: () => void): void {
  try {
    write();
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    throw new WireError(
      "store_failed",
      `The tokens could not be written (${code}); nothing has changed.`,
      {},
      { cause },
    );
  }
}

function readTokens(file: string): readonly StoredToken[] {
  if (!existsSync(file)) return [];
  try {
    const { tokens } = JSON.parse(readPrivate(file)) as { readonly tokens: readonly StoredToken[] };
    if (!Array.isArray(tokens) || !tokens.every(isStoredToken)) throw new Error("it does not hold tokens");
    return tokens;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      "token_unusable",
      `The named tokens ${file} cannot be used: ${why}. Delete the file; all of them are revoked then.`,
      { cause },
    );
  }
}

/** What is missing in one that was changed by hand must not turn into a right. */
function isStoredToken(value: Partial<StoredToken> | null): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { name, capabilities: allowed, hash, labels, cwds } = value;
  return (
    typeof name === "string" &&
    name !== MAIN_TOKEN &&
    /^[0-9a-f]{64}$/.test(String(hash)) &&
    Array.isArray(allowed) &&
    allowed.every((capability) => capabilities.includes(capability)) &&
    (!allowed.includes("admin") || (labels ?? cwds) === undefined) &&
    (labels === undefined || (typeof labels === "object" && labels !== null)) &&
    (cwds === undefined || Array.isArray(cwds))
  );
}

function hashOf(token: string): string {
  return hash("sha256", token);
}

/** Sessions know their directory without links. */
function withoutLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
