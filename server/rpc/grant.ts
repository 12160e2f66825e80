import { sep } from "node:path";
import type { Capability } from "../../protocol/capability.ts";
import type { Labels } from "../../protocol/session-options.ts";

/** What of a session decides whether a token knows it. */
export interface SessionScope {
  readonly cwd: string;
  readonly labels?: Labels | undefined;
}

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

  /** Whether the session exists for it. */
  covers({ cwd, labels = {} }: SessionScope): boolean {
    const wanted = Object.entries(this.labels ?? {});
    return (
      wanted.every(([name, text]) => Object.hasOwn(labels, name) && labels[name] === text) &&
      (this.cwds?.some((allowed) => isWithin(cwd, allowed)) ?? true)
    );
  }
}

/** Whether a path is a directory or lies below it; both without links. */
function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : `${directory}${sep}`);
}
