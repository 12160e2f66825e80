import { statSync } from "node:fs";
import { basename, isAbsolute } from "node:path";
import type { BeforeAgentStartEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { PartContext } from "../optimisation/part-context.ts";
import { canBeMadeOf } from "./belief.ts";
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
import { type Shortened, shortenContextFiles } from "./shorten.ts";
import type { PromptStart, StartConfig } from "./start.ts";

const part = "contextFiles";
/** Sources whose texts are at hand: a session has one, and one more for each time that its files have changed. */
const maxKnown = 16;
/** Positions where the section may end in a prompt without sections. */
const maxEnds = 8;

export interface ContextFilesOptions {
  readonly host: PartContext;
  readonly record: PromptRecord;
  readonly start: StartConfig;
}

/** Replaces the section `project_context` of each request by its decided text. */
export class ContextFiles {
  readonly #options: ContextFilesOptions;
  readonly #known = new Map<string, string>();
  #run: BeforeAgentStartEvent["systemPromptOptions"] | undefined;
  /** The newest source that went out as another text, and what was done to it if that was in this life. */
  #current: { readonly source: string; readonly text: string; readonly did?: Shortened } | undefined;

  constructor(options: ContextFilesOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#known.clear();
    this.#current = undefined;
  }

  /** A run is about to begin: pi shows what it makes the prompt of, and other extensions change it there. */
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

  readonly tokensOf = (text: string): number => this.#options.host.estimator.text(text);

  #textOf(source: string, start: PromptStart): string {
    const known = this.#known.get(source);
    if (known !== undefined) return known;
    // A prompt that was forced on the run has had it before.
    if (this.#options.record.isDecided(source)) return source;
    const text = this.#decide(source, start);
    if (this.#known.size < maxKnown) this.#known.set(source, text);
    return text;
  }

  #decide(source: string, { contextFiles, rules }: PromptStart): string {
    const { host, record } = this.#options;
    const hash = hashOf(source);
    const decided = record.get(CONTEXT_FILES_SECTION, hash);
    if (decided === null) return this.#take(source, source);
    if (decided !== undefined && canBeMadeOf(source, decided)) return this.#take(source, decided);
    if (!record.isOpen || source.length > maxSectionChars) {
      const why = record.isOpen ? "The context files are too long" : "The context files change from request to request";
      host.degraded(part, `${why}: they are sent as they are.`, { characters: source.length });
      return source;
    }
    const files = this.#filesOf(source);
    if (files === undefined) {
      host.degraded(part, "pi writes the context files in a way that is not known here: they are sent as they are.");
      return source;
    }
    const { dedupe, minParagraphChars, budgetTokens } = contextFiles;
    const did = shortenContextFiles(files, { rules, dedupe, minParagraphChars, budgetTokens, tokensOf: this.tokensOf });
    const text = did.tokens < did.tokensBefore ? did.text : source;
    record.put(CONTEXT_FILES_SECTION, hash, text === source ? null : text);
    if (did.tokens <= budgetTokens) host.restored(part);
    else {
      const figures = { budgetTokens, tokens: did.tokens };
      host.degraded(part, "The context files do not keep to the budget, though all their sections are cut.", figures);
    }
    return this.#take(source, text, did);
  }

  #take(source: string, text: string, did?: Shortened): string {
    this.#current = { source, text, ...(did === undefined ? {} : { did }) };
    return text;
  }

  /** The files that pi has read, else those that the text has, if they are there: a file's text may imitate pi's tags. */
  #filesOf(source: string): readonly ContextFile[] | undefined {
    const files = this.#run?.contextFiles;
    if (Array.isArray(files) && renderContextFiles(files) === source) return files;
    const parsed = parseContextFiles(source);
    if (parsed === undefined || new Set(parsed.map(({ path }) => path)).size < parsed.length) return undefined;
    return parsed.every(({ path }) => isContextFile(path)) ? parsed : undefined;
  }

  /** A prompt without sections, as pi gives it to a run that nobody has prompted. */
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
