import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isObject } from "../../pi-types.ts";
import { allTools, isKept, isOurs } from "./catalogue.ts";

/** A `custom` entry: that the three tools are on, and which others were taken from the active ones for them. */
export const TOOLS_ENTRY = "pi-rpcd.tools";
const maxNames = 5_000;

type Tools = Pick<ExtensionAPI, "getAllTools" | "getActiveTools" | "setActiveTools">;

/** What became of tools in an earlier life. */
export interface StoredTools {
  readonly taken: readonly string[];
  readonly given: readonly string[];
}

/** By the session's file. `undefined`: the three were not on, or nothing can be read. */
export function storedTools({ sessionManager }: Pick<ExtensionContext, "sessionManager">): StoredTools | undefined {
  let stored: StoredTools | undefined;
  for (const entry of sessionManager.getEntries()) {
    if (entry.type !== "custom" || entry.customType !== TOOLS_ENTRY || !isObject(entry.data)) continue;
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
 * The active set of a pi that cannot hide tools in another way. Tools are taken from it once. Those that pi adds to it
 * because they are registered later follow them; those that somebody activates stay.
 */
export class ActiveSet {
  readonly #pi: Tools;
  readonly #keep: () => readonly string[];
  readonly #taken = new Set<string>();
  /** Non-kept tools that are to stay active: the model or somebody else has asked for them. */
  readonly #given = new Set<string>();
  #known: ReadonlySet<string> = new Set();

  constructor(pi: Tools, keep: () => readonly string[]) {
    this.#pi = pi;
    this.#keep = keep;
  }

  get taken(): ReadonlySet<string> {
    return this.#taken;
  }

  /** What a later life must know. */
  get stored(): StoredTools {
    return { taken: [...this.#taken].slice(0, maxNames), given: [...this.#given].slice(0, maxNames) };
  }

  /** Takes all tools but the kept ones. What is active beside those that an earlier life has taken was asked for. */
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
  }

  /** Takes what was registered since. Says whether anything was taken. */
  follow(): boolean {
    const names = this.#names();
    const active = this.#pi.getActiveTools();
    const isRefreshed = [...names].some((name) => !this.#known.has(name));
    const keep = this.#keep();
    let hasTaken = false;
    for (const name of active) {
      if (isKept(name, keep) || this.#given.has(name)) continue;
      // Each registration has pi activate what the session lists as its tools.
      const isByItself = isRefreshed && (this.#taken.has(name) || !this.#known.has(name));
      if (isByItself) {
        this.#taken.add(name);
        hasTaken = true;
      } else {
        this.#taken.delete(name);
        this.#given.add(name);
      }
    }
    this.#known = names;
    if (hasTaken) this.#apply(active);
    return hasTaken;
  }

  /** Activates tools that the model has asked for. */
  give(names: readonly string[]): void {
    for (const name of names) {
      this.#taken.delete(name);
      this.#given.add(name);
    }
    const active = this.#pi.getActiveTools();
    this.#pi.setActiveTools([...active, ...names.filter((name) => !active.includes(name))]);
  }

  /** All is as it would be without us. */
  restore(stored: readonly string[] = []): void {
    const names = this.#names();
    const active = this.#pi.getActiveTools().filter((name) => !isOurs(name));
    const back = [...new Set([...this.#taken, ...stored])].filter((name) => names.has(name) && !active.includes(name));
    this.#taken.clear();
    this.#given.clear();
    this.#pi.setActiveTools([...active, ...back]);
  }

  #apply(active: readonly string[]): void {
    const left = active.filter((name) => !this.#taken.has(name));
    if (left.length < active.length) this.#pi.setActiveTools(left);
  }

  #names(): ReadonlySet<string> {
    return new Set(allTools(this.#pi).map(({ name }) => name));
  }
}
