import { statSync } from "node:fs";
import { basename, isAbsolute } from "node:path";
import type { BeforeAgentStartEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { withChangedSection } from "./head-section.ts";
import {
  CONTEXT_FILES_SECTION,
  type ContextFile,
  contextFilesEnd,
  contextFilesStart,
  parseContextFiles,
  renderContextFiles,
} from "./project-context.ts";
import { hashOf, maxSectionChars, type PromptRecord } from "./record.ts";
import { canBeMadeOf, type Shortened, shortenContextFiles } from "./shorten.ts";
import type { PromptStart, StartConfig } from "./start.ts";

/** Remembered sources: a session has one, and one more for each change of its files. */
const maxKnown = 16;
/** Positions where the section may end in a prompt without sections. */
const maxEnds = 8;

export interface ContextFilesOptions {
  readonly estimator: Pick<TokenEstimator, "text">;
  readonly status: PartStatus;
  readonly record: PromptRecord;
  readonly start: StartConfig;
}

/** Replaces the section `project_context` of each request by its decided text. */
export class ContextFiles {
  readonly #options: ContextFilesOptions;
  readonly #known = new Map<string, string>();
  #run: BeforeAgentStartEvent["systemPromptOptions"] | undefined;
  /** The newest source that was replaced, and how it was shortened if that was decided here. */
  #current: { readonly source: string; readonly text: string; readonly did?: Shortened } | undefined;

  constructor(options: ContextFilesOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#known.clear();
    this.#current = undefined;
  }

  /** Call at `before_agent_start`: the options of the prompt, which other extensions can change. */
  runStarts({ systemPromptOptions }: BeforeAgentStartEvent): void {
    this.#run = systemPromptOptions;
  }

  stage(messages: readonly AgentMessage[], ctx: ExtensionContext): readonly AgentMessage[] | undefined {
    const start = this.#options.start.at(ctx);
    if (!start.contextFiles.enabled) return undefined;
    const change = (section: string): string => this.#textOf(section, start);
    const changeText = (prompt: string): string => this.#inPrompt(prompt, change);
    // A prompt forced by another extension replaces the head after our stages.
    const forced = this.#run?.forceSystemPrompt;
    if (this.#run !== undefined && typeof forced === "string") this.#run.forceSystemPrompt = changeText(forced);
    const changed = withChangedSection(messages, CONTEXT_FILES_SECTION, change, changeText);
    return changed === messages ? undefined : changed;
  }

  figures(): Readonly<Record<string, number>> & { readonly saved: number } {
    const { tokensOf } = this;
    if (this.#current === undefined) return { saved: 0 };
    const { source, text, did } = this.#current;
    const tokensBefore = tokensOf(source);
    const tokens = tokensOf(text);
    const { excludedSections, repeatedParagraphs, cutSections } = did ?? {};
    const done = did === undefined ? {} : { excludedSections, repeatedParagraphs, cutSections };
    return { ...(done as Record<string, number>), tokensBefore, tokens, saved: Math.max(0, tokensBefore - tokens) };
  }

  readonly tokensOf = (text: string): number => this.#options.estimator.text(text);

  #textOf(source: string, start: PromptStart): string {
    const known = this.#known.get(source);
    if (known !== undefined) return known;
    // A prompt forced on the run may already contain the decided text.
    if (this.#options.record.isDecided(source)) return source;
    const text = this.#decide(source, start);
    if (this.#known.size < maxKnown) this.#known.set(source, text);
    return text;
  }

  #decide(source: string, { contextFiles, rules }: PromptStart): string {
    const { status, record } = this.#options;
    const hash = hashOf(source);
    const decided = record.get(CONTEXT_FILES_SECTION, hash);
    if (decided === null) return this.#take(source, source);
    if (decided !== undefined && canBeMadeOf(source, decided)) return this.#take(source, decided);
    if (!record.isOpen || source.length > maxSectionChars) {
      const why = record.isOpen ? "The context files are too long" : "The context files change from request to request";
      status.degraded(`${why}: they are sent as they are.`, { characters: source.length });
      return source;
    }
    const files = this.#filesOf(source);
    if (files === undefined) {
      status.degraded("pi writes the context files in a way that is not known here: they are sent as they are.");
      return source;
    }
    const { dedupe, minParagraphChars, budgetTokens } = contextFiles;
    const did = shortenContextFiles(files, { rules, dedupe, minParagraphChars, budgetTokens, tokensOf: this.tokensOf });
    const text = did.tokens < did.tokensBefore ? did.text : source;
    record.put(CONTEXT_FILES_SECTION, hash, text === source ? null : text);
    if (did.tokens <= budgetTokens) status.restored();
    else {
      const figures = { budgetTokens, tokens: did.tokens };
      status.degraded("The context files do not keep to the budget, though all their sections are cut.", figures);
    }
    return this.#take(source, text, did);
  }

  #take(source: string, text: string, did?: Shortened): string {
    this.#current = { source, text, ...(did === undefined ? {} : { did }) };
    return text;
  }

  /** The files that pi has read, or those in the text if they exist, because a file can imitate pi's tags. */
  #filesOf(source: string): readonly ContextFile[] | undefined {
    const files = this.#run?.contextFiles;
    if (Array.isArray(files) && renderContextFiles(files) === source) return files;
    const parsed = parseContextFiles(source);
    if (parsed === undefined || new Set(parsed.map(({ path }) => path)).size < parsed.length) return undefined;
    return parsed.every(({ path }) => isContextFile(path)) ? parsed : undefined;
  }

  /** Changes a prompt without sections, as pi passes it to a run without a prompt. */
  #inPrompt(prompt: string, change: (section: string) => string): string {
    const at = prompt.indexOf(contextFilesStart);
    if (at < 0) return prompt;
    const ends: number[] = [];
    for (let end = prompt.lastIndexOf(contextFilesEnd); end > at; end = prompt.lastIndexOf(contextFilesEnd, end - 1)) {
      ends.push(end + contextFilesEnd.length);
      if (ends.length === maxEnds) break;
    }
    const sections = ends.map((end) => prompt.slice(at, end));
    const { record } = this.#options;
    if (sections.some((one) => record.isDecided(one))) return prompt;
    const section =
      sections.find((one) => record.get(CONTEXT_FILES_SECTION, hashOf(one)) !== undefined) ??
      sections.find((one) => this.#filesOf(one) !== undefined) ??
      sections[0];
    if (section === undefined) return prompt;
    return prompt.slice(0, at) + change(section) + prompt.slice(at + section.length);
  }
}

const contextFileNames: ReadonlySet<string> = new Set([
  "AGENTS.override.md",
  "AGENTS.md",
  "AGENTS.MD",
  "CLAUDE.md",
  "CLAUDE.MD",
]);

function isContextFile(path: string): boolean {
  if (!isAbsolute(path) || !contextFileNames.has(basename(path))) return false;
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
