import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isRecord } from "../../../protocol/objects.ts";
import { allTools, isKept, isOurs } from "./catalogue.ts";

/** `customType` of the entry that records whether the three tools are on and which tools were deactivated. */
export const TOOLS_ENTRY = "pi-rpcd.tools";
const maxNames = 5_000;

type Tools = Pick<ExtensionAPI, "getAllTools" | "getActiveTools" | "setActiveTools">;

/** The recorded state of tools. */
export interface StoredTools {
  readonly taken: readonly string[];
  readonly given: readonly string[];
}

/** Reads the state from the session's file. `undefined`: the three tools were not on, or the entry is invalid. */
export function storedTools({ sessionManager }: Pick<ExtensionContext, "sessionManager">): StoredTools | undefined {
  let stored: StoredTools | undefined;
  for (const entry of sessionManager.getEntries()) {
    if (entry.type !== "custom" || entry.customType !== TOOLS_ENTRY || !isRecord(entry.data)) continue;
    const { v, on, taken, given } = entry.data;
    if (v !== 1 || typeof on !== "boolean") continue;
    stored = on ? { taken: namesIn(taken), given: namesIn(given) } : undefined;
  }
  return stored;
}

function namesIn(list: unknown): readonly string[] {
  if (!Array.isArray(list)) return [];
  const isName = (name: unknown): name is string => typeof name === "string" && name.length <= 256;
  return list.filter(isName).slice(0, maxNames);
}

/**
 * The active set of a pi that cannot hide tools otherwise. Tools are deactivated once. Tools that are registered later
 * are deactivated too; tools that others activate stay active.
 *
 * Whoever switches tools off sees only active ones and cannot name a deactivated one. So while a tool that was left
 * active is missing, the deactivated tools count as switched off too.
 */
export class ActiveSet {
  readonly #pi: Tools;
  readonly #keep: () => readonly string[];
  readonly #taken = new Set<string>();
  /** Other tools that stay active because the model or another extension activated them. */
  readonly #given = new Set<string>();
  /** The deactivated tools while another extension or the user has switched tools off. */
  readonly #withheld = new Set<string>();
  #known: ReadonlySet<string> = new Set();
  /** The last seen active tools. */
  #left: readonly string[] = [];
  /** Tools of that set that were switched off by others. */
  readonly #dropped = new Set<string>();

  constructor(pi: Tools, keep: () => readonly string[]) {
    this.#pi = pi;
    this.#keep = keep;
  }

  /** Tools that may be activated. Always the same set object. */
  get taken(): ReadonlySet<string> {
    this.#look();
    return this.#taken;
  }

  /** Whether another extension or the user has switched tools off. */
  get isRestricted(): boolean {
    this.#look();
    return this.#dropped.size > 0;
  }

  /** The state to record for a later pi. */
  get stored(): StoredTools {
    return {
      taken: [...this.#taken, ...this.#withheld].slice(0, maxNames),
      given: [...this.#given].slice(0, maxNames),
    };
  }

  /** Deactivates all tools except the kept ones. Other active tools of a recorded session were activated on purpose. */
  take(stored: StoredTools | undefined): void {
    const active = this.#pi.getActiveTools();
    const keep = this.#keep();
    for (const name of stored?.taken ?? []) if (!isKept(name, keep)) this.#taken.add(name);
    for (const name of stored?.given ?? []) if (!this.#taken.has(name)) this.#given.add(name);
    for (const name of active) {
      if (isKept(name, keep) || this.#taken.has(name)) continue;
      if (stored === undefined) this.#taken.add(name);
      else this.#given.add(name);
    }
    this.#apply(active);
    this.#known = this.#names();
    this.#left = this.#pi.getActiveTools();
  }

  /** Deactivates tools that were registered later. Returns whether there were any. */
  follow(): boolean {
    this.#look();
    const names = this.#names();
    const active = this.#pi.getActiveTools();
    const isRefreshed = [...names].some((name) => !this.#known.has(name));
    const keep = this.#keep();
    let hasTaken = false;
    for (const name of active) {
      if (isKept(name, keep) || this.#given.has(name)) continue;
      // Each registration makes pi activate the session's listed tools.
      const isByItself = isRefreshed && (this.#taken.has(name) || !this.#known.has(name));
      if (isByItself) {
        this.#taken.add(name);
        hasTaken = true;
      } else {
        this.#taken.delete(name);
        this.#withheld.delete(name);
        this.#given.add(name);
      }
    }
    this.#known = names;
    if (hasTaken) this.#apply(active);
    this.#left = this.#pi.getActiveTools();
    return hasTaken;
  }

  /** Activates tools that the model requested. */
  give(names: readonly string[]): void {
    for (const name of names) {
      this.#taken.delete(name);
      this.#given.add(name);
    }
    const active = this.#pi.getActiveTools();
    this.#pi.setActiveTools([...active, ...names.filter((name) => !active.includes(name))]);
    this.#left = this.#pi.getActiveTools();
  }

  /** Restores the active set to its state without this part. */
  restore(stored: readonly string[] = []): void {
    this.#look();
    const names = this.#names();
    const active = this.#pi.getActiveTools().filter((name) => !isOurs(name));
    const back = [...new Set([...this.#taken, ...stored])].filter((name) => names.has(name) && !active.includes(name));
    for (const set of [this.#taken, this.#given, this.#withheld, this.#dropped]) set.clear();
    this.#left = [];
    this.#pi.setActiveTools([...active, ...back]);
  }

  /** Detects tools that others have switched off or on. */
  #look(): void {
    const active = new Set(this.#pi.getActiveTools());
    const missing = [...this.#left, ...this.#dropped].filter((name) => !active.has(name));
    this.#left = [...active];
    if (missing.length === 0 && this.#dropped.size === 0) return;
    const names = this.#names();
    this.#dropped.clear();
    // A tool that no longer exists was not switched off.
    for (const name of missing) if (names.has(name)) this.#dropped.add(name);
    const [from, to] = this.#dropped.size > 0 ? [this.#taken, this.#withheld] : [this.#withheld, this.#taken];
    for (const name of from) to.add(name);
    from.clear();
  }

  #apply(active: readonly string[]): void {
    const left = active.filter((name) => !this.#taken.has(name));
    if (left.length < active.length) this.#pi.setActiveTools(left);
  }

  #names(): ReadonlySet<string> {
    return new Set(allTools(this.#pi).map(({ name }) => name));
  }
}
