import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { SectionRule } from "./shorten.ts";

/** The configuration of the prompt while these extension instances last. */
export interface PromptStart {
  readonly contextFiles: OptimisationConfig["contextFiles"];
  readonly rules: readonly SectionRule[];
  /** Names of skills. */
  readonly prefetch: readonly string[];
}

export interface StartNeeds {
  readonly config: () => Pick<OptimisationConfig, "contextFiles" | "skills">;
  /** The session's labels, for conditions. */
  readonly labels: () => Readonly<Record<string, string>>;
  /** Whether the session had already begun when these modules were loaded. */
  readonly isLate: boolean;
}

/**
 * Keeps the configuration with which the session, or its new pi, began, because the prompt must not change between two
 * requests. A session without a request uses the configuration of its first request.
 */
export class StartConfig {
  readonly #needs: StartNeeds;
  #start: PromptStart | undefined;

  constructor(needs: StartNeeds) {
    this.#needs = needs;
  }

  begin(ctx: ExtensionContext): void {
    this.#start = undefined;
    if (!hasAnswers(ctx)) return;
    const start = this.at(ctx);
    if (this.#needs.isLate)
      this.#start = { ...start, contextFiles: { ...start.contextFiles, enabled: false }, prefetch: [] };
  }

  at({ cwd }: Pick<ExtensionContext, "cwd">): PromptStart {
    if (this.#start !== undefined) return this.#start;
    const { contextFiles, skills } = this.#needs.config();
    const labels = this.#needs.labels();
    const rules = contextFiles.sections.map((rule) => ({ heading: rule.heading, holds: holds(rule, labels, cwd) }));
    this.#start = { contextFiles, rules, prefetch: skills.enabled ? skills.prefetch : [] };
    return this.#start;
  }
}

type Rule = OptimisationConfig["contextFiles"]["sections"][number];

/** Whether the label and the path that a rule names exist. */
export function holds({ label, path }: Rule, labels: Readonly<Record<string, string>>, cwd: string): boolean {
  if (label !== undefined && !hasLabel(labels, label)) return false;
  return path === undefined || existsSync(resolve(cwd, path));
}

/** `name`, or `name=text`. */
function hasLabel(labels: Readonly<Record<string, string>>, wanted: string): boolean {
  const at = wanted.indexOf("=");
  const name = at < 0 ? wanted : wanted.slice(0, at);
  return Object.hasOwn(labels, name) && (at < 0 || labels[name] === wanted.slice(at + 1));
}

function hasAnswers({ sessionManager }: ExtensionContext): boolean {
  return sessionManager.getEntries().some((entry) => entry.type === "message" && entry.message.role === "assistant");
}
