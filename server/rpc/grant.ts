import { realpath } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import type { Capability } from "../../protocol/capability.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Labels } from "../../protocol/session-options.ts";
import type { Covers, SessionScope } from "../core/session-scope.ts";

export interface GrantOptions {
  readonly name: string;
  /** What tells its idempotency keys from those of others, also of one that had the name before. Default: none. */
  readonly keys?: string | undefined;
  readonly capabilities: readonly Capability[];
  /** Only sessions with all of them. */
  readonly labels?: Labels | undefined;
  /** Only sessions of these directories, which have no links in them, and of those below. */
  readonly cwds?: readonly string[] | undefined;
}

/** What a token allows, as the daemon's record says: nothing that a client says changes it. */
export class Grant {
  readonly name: string;
  readonly keys: string;
  readonly labels: Labels | undefined;
  readonly cwds: readonly string[] | undefined;
  readonly #capabilities: ReadonlySet<Capability>;
  #isEnded = false;

  constructor({ name, keys = "", capabilities, labels, cwds }: GrantOptions) {
    this.name = name;
    this.keys = keys;
    this.labels = labels;
    this.cwds = cwds;
    this.#capabilities = new Set(capabilities);
  }

  /** Whether the token was revoked or has another secret now. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether some sessions do not exist for it. */
  get isLimited(): boolean {
    return this.labels !== undefined || this.cwds !== undefined;
  }

  end(): void {
    this.#isEnded = true;
  }

  allows(capability: Capability): boolean {
    return this.#capabilities.has(capability) || this.#capabilities.has("admin");
  }

  /** As {@link covers}; undefined where all sessions exist for it. */
  get limits(): Covers | undefined {
    return this.isLimited ? (scope) => this.covers(scope) : undefined;
  }

  /** The labels of a session that is created with it. Throws `forbidden` where others are asked for. */
  labelled(labels: Labels | undefined): { readonly labels?: Labels } {
    if (this.labels === undefined) return labels === undefined ? {} : { labels };
    const other = Object.entries(this.labels).find(([name, text]) => (labels?.[name] ?? text) !== text);
    if (other !== undefined) throw this.#outside("labels");
    return { labels: { ...labels, ...this.labels } };
  }

  /** Throws `forbidden` unless a session may be created there. */
  requireInside(scope: SessionScope): void {
    if (!this.covers({ ...scope, labels: this.labels })) throw this.#outside("cwd");
  }

  /** Throws `forbidden` where some sessions do not exist for it: for what tells of all of them together. */
  requireUnlimited(): void {
    if (this.labels !== undefined) throw this.#outside("labels");
    if (this.cwds !== undefined) throw this.#outside("cwd");
  }

  /** The files as the system names them. Throws `forbidden` where one lies outside, whether it is there or not. */
  async inside(files: readonly string[]): Promise<string[]> {
    const named = await Promise.all(files.map((file) => withoutLinks(resolve(file))));
    if (named.every((file) => this.cwds?.some((allowed) => isWithin(file, allowed)) ?? true)) return named;
    throw new WireError("forbidden", `The token "${this.name}" is for no files of other directories.`, {
      limit: "cwd",
    });
  }

  /** Whether the session exists for it. */
  covers({ cwd, labels = {} }: SessionScope): boolean {
    const wanted = Object.entries(this.labels ?? {});
    return (
      wanted.every(([name, text]) => Object.hasOwn(labels, name) && labels[name] === text) &&
      (this.cwds?.some((allowed) => isWithin(cwd, allowed)) ?? true)
    );
  }

  #outside(limit: "cwd" | "labels"): WireError {
    const why = limit === "cwd" ? "of other directories" : "with other labels";
    return new WireError("forbidden", `The token "${this.name}" is for no sessions ${why}.`, { limit });
  }
}

/** Whether a path is a directory or lies below it; both without links. */
function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`);
}

/** A file's name without links, as far as it is there. */
async function withoutLinks(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const directory = dirname(file);
    return directory === file ? file : join(await withoutLinks(directory), basename(file));
  }
}
