import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { PartContext } from "../optimisation/part-context.ts";
import type { SectionRule } from "./shorten.ts";

/** What the prompt is made by, for this life of the session's extensions. */
export interface PromptStart {
  readonly contextFiles: OptimisationConfig["contextFiles"];
  readonly rules: readonly SectionRule[];
  /** Names of skills. */
  readonly prefetch: readonly string[];
}

/**
 * Holds on to the configuration that the session, or its new pi, began with: the prompt must not change between two
 * requests. A session that has had no request takes what holds at its first.
 */
export class StartConfig {
  readonly #host: Pick<PartContext, "config" | "memory">;
  /** Whether these modules were loaded when the session had begun already. */
  readonly #isLate: boolean;
  #start: PromptStart | undefined;

  constructor(host: Pick<PartContext, "config" | "memory" | "context">) {
    this.#host = host;
    this.#isLate = host.context() !== undefined;
  }

  begin(ctx: ExtensionContext): void {
    this.#start = undefined;
    if (!hasAnswers(ctx)) return;
    const start = this.at(ctx);
    if (this.#isLate) this.#start = { ...start, contextFiles: { ...start.contextFiles, enabled: false }, prefetch: [] };
  }

  at({ cwd }: Pick<ExtensionContext, "cwd">): PromptStart {
    if (this.#start !== undefined) return this.#start;
    const { contextFiles, skills } = this.#host.config();
    const labels = this.#host.memory.parts?.labels ?? {};
    const rules = contextFiles.sections.map((rule) => ({ heading: rule.heading, holds: holds(rule, labels, cwd) }));
    this.#start = { contextFiles, rules, prefetch: skills.enabled ? skills.prefetch : [] };
    return this.#start;
  }
}

type Rule = OptimisationConfig["contextFiles"]["sections"][number];

/** Whether a rule's label and path are there, as far as it names them. */
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
