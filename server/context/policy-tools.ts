import type { Logger } from "pino";
import { inWords, type Mistake } from "../../protocol/configuration/mistakes.ts";
import { nearest } from "../../protocol/configuration/nearest.ts";
import { configurationRefusal } from "../../protocol/configuration/refusal.ts";
import { isRecord } from "../../protocol/objects.ts";
import { namedTools } from "../../protocol/optimisation/contradictions.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { isChildOf, type SessionCore } from "../core/session-core.ts";
import type { SessionRecord } from "../core/session-record.ts";
import { within } from "../lib/deadline.ts";
import type { Journal } from "../log/journal.ts";
import type { Child } from "../pi/child.ts";

export interface PolicyToolsOptions {
  readonly record: Pick<SessionRecord, "stored">;
  readonly journal: Pick<Journal, "say">;
  /** How long pi may take to list its tools. */
  readonly startTimeoutMs: number;
  readonly log: Logger;
}

type Named = ReturnType<typeof toolsOfPolicies>;

/** Maximum length of a name in a configuration. */
const maxNameLength = 128;
const maxTold = 256;

/**
 * Checks the tools that the session's policies name against those of its pi. A pi that does not list its tools
 * passes.
 */
export class PolicyTools {
  readonly #core: SessionCore;
  readonly #options: PolicyToolsOptions;
  readonly #told = new Set<string>();

  constructor(core: SessionCore, options: PolicyToolsOptions) {
    this.#core = core;
    this.#options = options;
  }

  /**
   * Throws `invalid_params` where the running pi lacks a tool that `own` names. `merged`: all layers together. If no
   * pi runs, the next one is checked.
   */
  async require(own: OptimisationOptions, merged = this.#stored()): Promise<void> {
    const named = toolsOfPolicies(own, merged);
    if (named.length === 0) return;
    if (this.#core.state.kind === "starting") await this.#core.startOver();
    const { state } = this.#core;
    if (state.kind !== "idle" && state.kind !== "running") return;
    const mistakes = await this.#unknown(named, state.child);
    if (mistakes.length > 0) throw configurationRefusal(mistakes);
  }

  /** A child is ready: tells the subscribers which tools it lacks, once while the session is in this daemon. */
  look(child: Child): void {
    const named = toolsOfPolicies(this.#stored());
    if (named.length > 0) void this.#tell(named, child);
  }

  async #tell(named: Named, child: Child): Promise<void> {
    const mistakes = await this.#unknown(named, child);
    if (!isChildOf(this.#core, child)) return;
    for (const mistake of mistakes) {
      const reason = inWords(mistake).slice(0, 1_024).toWellFormed();
      if (this.#told.has(reason) || this.#told.size >= maxTold) continue;
      this.#told.add(reason);
      this.#options.journal.say("optimisation/degraded", { part: String(mistake.place[1]), reason });
    }
  }

  async #unknown(named: Named, child: Child): Promise<ReturnType<typeof unknownTools>> {
    try {
      const { startTimeoutMs } = this.#options;
      const asked = await within(child.link.send<unknown>({ kind: "ask", about: "tools", params: {} }), startTimeoutMs);
      const known = asked.kind === "done" ? namesIn(asked.value) : undefined;
      if (known !== undefined) return unknownTools(named, known);
      this.#options.log.warn("pi did not list its tools; the session's policies were not checked");
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot ask pi for its tools");
    }
    return [];
  }

  #stored(): OptimisationOptions {
    return this.#options.record.stored.options.optimisation ?? {};
  }
}

/** Other code in the same pi can have written it. */
function namesIn(answer: unknown): string[] | undefined {
  const tools = isRecord(answer) ? answer["tools"] : undefined;
  if (!Array.isArray(tools)) return undefined;
  return tools.filter((name): name is string => typeof name === "string" && name.length <= maxNameLength);
}

type NamedTool = ReturnType<typeof namedTools>[number];

/** Maximum number of reported tools. */
const maxMistakes = 16;
/** Maximum number of known tools that are searched for a similar name. */
const maxKnown = 1_000;

/**
 * The tools that a layer names and that pi must have when it starts. Tools of MCP servers come later. Parts that are
 * off in `merged`, the configuration of all layers, are not checked.
 */
export function toolsOfPolicies(layer: OptimisationOptions, merged: OptimisationOptions = layer): NamedTool[] {
  const named = namedTools(layer).filter(([, tool]) => !tool.startsWith("mcp__"));
  if (named.length === 0) return [];
  const config = resolveOptimisation(merged);
  return named.filter(([[, part]]) => config[part as "masking" | "toolResults" | "dynamicTools"].enabled);
}

/** Tools that pi does not have: at most 16 of them. */
export function unknownTools(named: readonly NamedTool[], known: readonly string[]): Mistake[] {
  const has = new Set(known);
  return named
    .filter(([, tool]) => !has.has(tool))
    .slice(0, maxMistakes)
    .map(([place, tool]) => ({ place, why: `pi does not have the tool "${tool}"${hint(tool, known)}` }));
}

function hint(tool: string, known: readonly string[]): string {
  const within = tool.length < 4 ? 1 : Math.floor(tool.length / 3) + 1;
  const near = nearest(tool, known.slice(0, maxKnown), within);
  return near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
}
