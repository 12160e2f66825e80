import type { BeforeAgentStartEvent } from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { ForcedPrompt } from "../structured/forced-prompt.ts";
import { withHeadSection } from "./head-section.ts";
import { hashOf, type PromptRecord } from "./record.ts";
import type { SkillFiles } from "./skill-files.ts";
import type { SkillText } from "./skill-text.ts";
import type { PromptStart } from "./start.ts";

export const PREFETCH_SECTION = "skills_prefetched";

/** Limit of all prefetched skills together, in UTF-16 units. */
export const maxPrefetchChars = 512 * 1024;

interface Decision {
  readonly sourceHash: string;
  readonly section: string | undefined;
  /** By skill name. */
  readonly blocks: ReadonlyMap<string, string>;
}

/** Skills whose full text is in the prompt from the start, in the section `skills_prefetched`. */
export class Prefetch {
  readonly #status: Pick<PartStatus, "degraded">;
  readonly #record: PromptRecord;
  readonly #skills: SkillFiles;
  readonly #forced = new ForcedPrompt();
  #decision: Decision | undefined;
  #isStored = false;

  constructor(status: Pick<PartStatus, "degraded">, record: PromptRecord, skills: SkillFiles) {
    this.#status = status;
    this.#record = record;
    this.#skills = skills;
  }

  begin(): void {
    this.#decision = undefined;
    this.#isStored = false;
  }

  runStarts(event: BeforeAgentStartEvent): void {
    this.#forced.runStarts(event);
  }

  /** Whether the prompt has exactly this text of the skill. */
  has({ name, block }: SkillText, start: PromptStart): boolean {
    return start.prefetch.includes(name) && this.#decided(start).blocks.get(name) === block;
  }

  /** Adds the section. It is decided at the first request. */
  stage(messages: readonly AgentMessage[], start: PromptStart): readonly AgentMessage[] | undefined {
    if (start.prefetch.length === 0) return undefined;
    const { section, sourceHash } = this.#decided(start);
    if (section === undefined) return undefined;
    if (!this.#isStored) {
      this.#isStored = true;
      if (this.#record.get(PREFETCH_SECTION, sourceHash) === undefined)
        this.#record.put(PREFETCH_SECTION, sourceHash, section);
    }
    this.#forced.add(section);
    return withHeadSection(messages, PREFETCH_SECTION, section);
  }

  /** The section. `undefined` before the first request, and without skills. */
  get section(): string | undefined {
    return this.#decision?.section;
  }

  #decided({ prefetch }: PromptStart): Decision {
    this.#decision ??= this.#decide(prefetch);
    return this.#decision;
  }

  #decide(names: readonly string[]): Decision {
    const blocks = new Map<string, string>();
    let chars = 0;
    for (const name of new Set(names)) {
      const skill = this.#skills.read(name);
      const isRoom = skill === undefined || chars + skill.block.length <= maxPrefetchChars;
      if (skill === undefined || !isRoom) {
        const why = isRoom
          ? "is unknown, or its file is unreadable"
          : `is too long together with the others (${maxPrefetchChars})`;
        this.#status.degraded(`The skill "${name}" of prefetch ${why}.`);
        continue;
      }
      chars += skill.block.length;
      blocks.set(name, skill.block);
    }
    const sourceHash = hashOf(JSON.stringify([...blocks]));
    if (blocks.size === 0) return { sourceHash, section: undefined, blocks };
    const made = `<${PREFETCH_SECTION}>\n${opening}\n\n${[...blocks.values()].join("\n\n")}\n</${PREFETCH_SECTION}>`;
    return { sourceHash, section: this.#record.get(PREFETCH_SECTION, sourceHash) ?? made, blocks };
  }
}

const opening = "These skills are loaded: go by their text without reading their files.";
