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
import { WebTokens, type WebTokensOptions } from "./web-tokens.ts";

/** A named token, as stored in its file. */
type StoredToken = Omit<TokenInfo, "lastUsedAt"> & { readonly hash: string };

/** The tokens as the edge uses them. */
export interface TokenSource {
  /** Undefined: the text is not a valid token. */
  find(token: string): Grant | undefined;
  /** Calls the listener with each ended grant, after the answer to the call that ended it has been written. */
  onEnded(listener: (grant: Grant) => void): void;
}

export interface TokensOptions {
  /** The token in `daemon.json`. */
  readonly main: string;
  /** Replaces the main token, for later daemons and for clients. */
  readonly setMain: (token: string) => void;
  /** The file of the named tokens. */
  readonly file: string;
  readonly maxTokens: number;
  /** Those of browsers. */
  readonly web: WebTokensOptions["limits"];
}

interface Entry {
  /** In base64, as bytes. */
  readonly hash: Buffer;
  readonly grant: Grant;
  readonly stored: StoredToken;
  lastUsedAt?: number;
}

/** Length of a SHA-256 hash in base64. */
const hashLength = 44;

/** 256 random bits. */
function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Calls the function after the answer to the current call has been written. */
type Afterwards = (then: () => void) => void;

/** The main token and the named ones, as hashes. */
export class Tokens implements TokenSource {
  /** Those of browsers. They are valid at the web console alone, so {@link find} does not find them. */
  readonly web: WebTokens;
  readonly #options: TokensOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(grant: Grant) => void>();
  /**
   * The entries of texts that were found: a hash takes longer than the rest of admission. A Map compares texts only if
   * their hashes are equal, which depend on a seed of this process, so that the time tells nothing about a token.
   */
  readonly #found = new Map<string, Entry>();
  /** Buffer for the hash of the token to find. */
  readonly #presented = Buffer.alloc(hashLength);

  /** Throws the {@link StartError} `token_unusable`. */
  constructor(options: TokensOptions) {
    this.#options = options;
    this.web = new WebTokens({ limits: options.web, isTaken: (name) => this.#entries.has(name) });
    const main = {
      name: MAIN_TOKEN,
      capabilities: [...capabilities],
      createdAt: Date.now(),
      hash: hashOf(options.main),
    };
    for (const stored of [main, ...readTokens(options.file)]) this.#put(stored);
  }

  find(token: string): Grant | undefined {
    const entry = this.#found.get(token) ?? this.#search(token);
    if (entry === undefined) return undefined;
    entry.lastUsedAt = Date.now();
    return entry.grant;
  }

  #search(token: string): Entry | undefined {
    // One call, into existing memory: a new object for each hash costs four times as much.
    this.#presented.write(hash("sha256", token, "base64"), "latin1");
    let found: Entry | undefined;
    // Compares with all, so that the time does not depend on the token.
    for (const entry of this.#entries.values()) if (timingSafeEqual(this.#presented, entry.hash)) found = entry;
    if (found !== undefined) this.#found.set(token, found);
    return found;
  }

  onEnded(listener: (grant: Grant) => void): void {
    this.#listeners.add(listener);
  }

  list(): Result<"token/list"> {
    return { tokens: [...Array.from(this.#entries.values(), infoOf), ...this.web.list()] };
  }

  /** Throws `conflict`, `overloaded`, `invalid_params`, `store_failed`. */
  create({ name, capabilities: allowed, labels, cwds }: Params<"token/create">): Result<"token/create"> {
    if (this.#entries.has(name) || this.web.has(name))
      throw new WireError("conflict", `A token "${name}" already exists.`, { name });
    const { maxTokens } = this.#options;
    if (this.#entries.size > maxTokens) {
      throw new WireError("overloaded", `There are ${maxTokens} named tokens, which is the limit. Revoke one.`, {
        retryAfterMs: 60_000,
      });
    }
    if (allowed.includes("admin") && (labels ?? cwds) !== undefined) {
      throw new WireError(
        "invalid_params",
        "A token that allows admin cannot have limits, because it could create tokens without.",
        {
          findings: [{ path: "/capabilities", message: "must not have admin if labels or cwds are given" }],
        },
      );
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

  /** `afterwards`: as for {@link revoke}. Throws `token_not_found`, `forbidden`, `store_failed`. */
  rotate(name: string, afterwards: Afterwards): Result<"token/rotate"> {
    if (this.web.has(name)) {
      throw new WireError("forbidden", "The token of a browser cannot be rotated. Revoke it, and open the page again.");
    }
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
   * Closes the token's connections by `afterwards`, because the call itself may have come over one of them. Throws
   * `token_not_found`, `forbidden`, `store_failed`.
   */
  revoke(name: string, afterwards: Afterwards): void {
    if (this.web.has(name)) {
      this.web.end(name, afterwards);
      return;
    }
    const former = this.#get(name);
    if (name === MAIN_TOKEN) {
      throw new WireError(
        "forbidden",
        "The daemon's main token cannot be revoked, because clients need it. Rotate it.",
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

  /** From now on the token allows nothing. */
  #end(grant: Grant, afterwards: Afterwards): void {
    grant.end();
    this.#found.clear();
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
    throw new WireError("store_failed", `The tokens cannot be written (${code}); nothing has changed.`, {}, { cause });
  }
}

function readTokens(file: string): readonly StoredToken[] {
  if (!existsSync(file)) return [];
  try {
    const { tokens } = JSON.parse(readPrivate(file)) as { readonly tokens: readonly StoredToken[] };
    if (!Array.isArray(tokens) || !tokens.every(isStoredToken)) throw new Error("it does not contain tokens");
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

/** A hand-edited token with a missing field must not gain rights. */
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

/** The real path, because the directories of sessions have no symbolic links. */
function withoutLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
