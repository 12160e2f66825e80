import { createHash } from "node:crypto";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** `customType` of the entry with the decisions about the prompt. */
export const PROMPT_ENTRY_TYPE = "pi-rpcd.prompt";

/** Longest section in an entry, in UTF-16 units; longer ones were not written by this extension. */
export const maxSectionChars = 2 * 1024 * 1024;
/** Decisions per load of the extension, because a source can vary from request to request. */
const maxDecisions = 16;

/** The text that replaces a section's source; `null`: the source itself. */
export type Decided = string | null;

export interface PromptRecordNeeds {
  readonly pi: Pick<ExtensionAPI, "appendEntry">;
  /** Whether this pi must not write to the session. */
  readonly isReadOnly: () => boolean;
  readonly fault: HostPort["fault"];
}

/** Decisions about prompt sections. The first decision for a source is final for the session. */
export class PromptRecord {
  readonly #needs: PromptRecordNeeds;
  readonly #decided = new Map<string, Decided>();
  readonly #texts = new Set<string>();
  #made = 0;

  constructor(needs: PromptRecordNeeds) {
    this.#needs = needs;
  }

  /** Reads the decisions in the session's file. */
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

  /** Whether the text was decided for some source. */
  isDecided(text: string): boolean {
    return this.#texts.has(text);
  }

  /** Whether more decisions are allowed. */
  get isOpen(): boolean {
    return this.#made < maxDecisions;
  }

  /** Decides a text for this session. The decision is valid even if it cannot be written. */
  put(section: string, sourceHash: string, text: Decided): void {
    this.#made += 1;
    this.#take(section, sourceHash, text);
    if (this.#needs.isReadOnly()) return;
    try {
      this.#needs.pi.appendEntry(PROMPT_ENTRY_TYPE, { v: 1, sections: { [section]: { sourceHash, text } } });
    } catch (thrown) {
      this.#needs.fault(`prompt/${section}`, thrown);
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
  if (!isRecord(data) || data["v"] !== 1 || !isRecord(data["sections"])) return [];
  return Object.entries(data["sections"]).flatMap(([section, decision]): Decision[] => {
    if (!isRecord(decision)) return [];
    const { sourceHash, text } = decision;
    if (typeof sourceHash !== "string" || !/^[0-9a-f]{64}$/.test(sourceHash)) return [];
    if (text === null) return [[section, sourceHash, text]];
    if (typeof text !== "string" || text.length > maxSectionChars) return [];
    const isSection = text.startsWith(`<${section}>\n`) && text.endsWith(`\n</${section}>`);
    return isSection ? [[section, sourceHash, text]] : [];
  });
}
