import { resolve, sep } from "node:path";
import type { Capability } from "../../protocol/capability.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Labels } from "../../protocol/session-options.ts";
import type { Covers, SessionScope } from "../core/session-scope.ts";
import { withoutLinks } from "../lib/real-path.ts";

export interface GrantOptions {
  readonly name: string;
  /** Separates its idempotency keys from those of other tokens, also of a former token with its name. Default: none. */
  readonly keys?: string | undefined;
  readonly capabilities: readonly Capability[];
  /** Limits the token to sessions with all of these labels. */
  readonly labels?: Labels | undefined;
  /** Limits the token to sessions in these directories and their subdirectories. Paths without symbolic links. */
  readonly cwds?: readonly string[] | undefined;
}

/** What a token allows, by the daemon's own record. Nothing that a client sends changes it. */
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

  /** Whether the token was revoked, or its secret was replaced. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether sessions outside its limits do not exist for it. */
  get isLimited(): boolean {
    return this.labels !== undefined || this.cwds !== undefined;
  }

  end(): void {
    this.#isEnded = true;
  }

  get capabilities(): readonly Capability[] {
    return [...this.#capabilities];
  }

  allows(capability: Capability): boolean {
    return this.#capabilities.has(capability) || this.#capabilities.has("admin");
  }

  /** {@link covers} as a function. Undefined: the token has no limits. */
  get limits(): Covers | undefined {
    return this.isLimited ? (scope) => this.covers(scope) : undefined;
  }

  /** The labels of a session that it creates. Throws `forbidden` if the call has other values for its labels. */
  labelled(labels: Labels | undefined): { readonly labels?: Labels } {
    if (this.labels === undefined) return labels === undefined ? {} : { labels };
    const other = Object.entries(this.labels).find(([name, text]) => (labels?.[name] ?? text) !== text);
    if (other !== undefined) throw this.#outside("labels");
    return { labels: { ...labels, ...this.labels } };
  }

  /** Throws `forbidden` unless it may create a session there. */
  requireInside(scope: SessionScope): void {
    if (!this.covers({ ...scope, labels: this.labels })) throw this.#outside("cwd");
  }

  /** Throws `forbidden` if it has limits. For answers about all sessions together. */
  requireUnlimited(): void {
    if (this.labels !== undefined) throw this.#outside("labels");
    if (this.cwds !== undefined) throw this.#outside("cwd");
  }

  /** The real paths of files. Throws `forbidden` if one is outside its directories, whether it exists or not. */
  async inside(files: readonly string[]): Promise<string[]> {
    const named = await Promise.all(files.map((file) => withoutLinks(resolve(file))));
    if (named.every((file) => this.cwds?.some((allowed) => isWithin(file, allowed)) ?? true)) return named;
    throw new WireError("forbidden", `The token "${this.name}" does not allow files in other directories.`, {
      limit: "cwd",
    });
  }

  /** Whether a session is within its limits. */
  covers({ cwd, labels = {} }: SessionScope): boolean {
    const wanted = Object.entries(this.labels ?? {});
    return (
      wanted.every(([name, text]) => Object.hasOwn(labels, name) && labels[name] === text) &&
      (this.cwds?.some((allowed) => isWithin(cwd, allowed)) ?? true)
    );
  }

  #outside(limit: "cwd" | "labels"): WireError {
    const why = limit === "cwd" ? "in other directories" : "with other labels";
    return new WireError("forbidden", `The token "${this.name}" does not allow sessions ${why}.`, { limit });
  }
}

/** Whether a path is a directory or is inside it. Both have no symbolic links. */
function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`);
}
