import { createHash } from "node:crypto";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isObject } from "../../../extension/pi-types.ts";
import type { PartContext } from "../optimisation/part-context.ts";

/** The session's entry with what was decided of the prompt. */
export const PROMPT_ENTRY_TYPE = "pi-rpcd.prompt";

/** A text of the prompt that may stand in an entry, in UTF-16 units: longer ones were not written by us. */
export const maxSectionChars = 2 * 1024 * 1024;
/** Decisions that one life of the session's extensions makes: a source that varies from request to request ends here. */
const maxDecisions = 16;

/** The text that stands for a section's source; `null`: the source itself. */
export type Decided = string | null;

/** Decisions about prompt sections. The first decision for a source is final for the session. */
export class PromptRecord {
  readonly #host: Pick<PartContext, "pi" | "memory" | "fault">;
  readonly #decided = new Map<string, Decided>();
  readonly #texts = new Set<string>();
  #made = 0;

  constructor(host: Pick<PartContext, "pi" | "memory" | "fault">) {
    this.#host = host;
  }

  /** Reads what the session's file has. */
  begin({ sessionManager }: Pick<ExtensionContext, "sessionManager">): void {
    this.#decided.clear();
    this.#texts.clear();
    this.#made = 0;
    for (const entry of sessionManager.getEntries()) {
      if (entry.type !== "custom" || entry.customType !== PROMPT_ENTRY_TYPE) continue;
      for (const [section, hash, text] of decisionsIn(entry.data)) {
        if (!this.#decided.has(keyOf(section, hash))) this.#take(section, hash, text);
      }
    }
  }

  /** `undefined`: nothing was decided for this source. */
  get(section: string, sourceHash: string): Decided | undefined {
    return this.#decided.get(keyOf(section, sourceHash));
  }

  /** Whether this is what was decided for some source. */
  isDecided(text: string): boolean {
    return this.#texts.has(text);
  }

  /** Whether more may be decided. */
  get isOpen(): boolean {
    return this.#made < maxDecisions;
  }

  /** Keeps it for this and all later lives. It holds, though it cannot be written. */
  put(section: string, sourceHash: string, text: Decided): void {
    this.#made += 1;
    this.#take(section, sourceHash, text);
    if (this.#host.memory.isOnlyAsked) return;
    try {
      this.#host.pi.appendEntry(PROMPT_ENTRY_TYPE, { v: 1, sections: { [section]: { sourceHash, text } } });
    } catch (thrown) {
      this.#host.fault(`prompt/${section}`, thrown);
    }
  }

  #take(section: string, sourceHash: string, text: Decided): void {
    this.#decided.set(keyOf(section, sourceHash), text);
    if (text !== null) this.#texts.add(text);
  }
}

export function hashOf(source: string): string {
  return createHash("sha256").update(source).digest("hex");
}

function keyOf(section: string, sourceHash: string): string {
  return `${section} ${sourceHash}`;
}

type Decision = readonly [section: string, hash: string, text: Decided];

/** Validates the entry, because session files are untrusted. Ignores texts that are not a section of this name. */
function decisionsIn(data: unknown): Decision[] {
  if (!isObject(data) || data["v"] !== 1 || !isObject(data["sections"])) return [];
  return Object.entries(data["sections"]).flatMap(([section, decision]): Decision[] => {
    if (!isObject(decision)) return [];
    const { sourceHash, text } = decision;
    if (typeof sourceHash !== "string" || !/^[0-9a-f]{64}$/.test(sourceHash)) return [];
    if (text === null) return [[section, sourceHash, text]];
    if (typeof text !== "string" || text.length > maxSectionChars) return [];
    const isSection = text.startsWith(`<${section}>\n`) && text.endsWith(`\n</${section}>`);
    return isSection ? [[section, sourceHash, text]] : [];
  });
}
