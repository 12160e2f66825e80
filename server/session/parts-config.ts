import type { PartsConfig } from "../../protocol/link.ts";
import { DYNAMIC_TOOLS, type OptimisationConfig, RECALL_TOOL, SKILL_TOOL } from "../../protocol/optimisation/config.ts";
import { isAnyOn, resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import type { Child } from "../pi/child.ts";
import type { PiOptions } from "../pi/spawn-options.ts";
import type { StoredOptions, StoredSession } from "../store/sessions.ts";

/** What the parts inside a session's pi go by. `undefined`: none is on, and pi is as it would be without us. */
export function partsOf(
  { options, labels = {} }: Pick<StoredSession, "options" | "labels">,
  spillDirectory: string,
): PartsConfig | undefined {
  if (options.optimisation === undefined) return undefined;
  const optimisation = resolveOptimisation(options.optimisation);
  return isAnyOn(optimisation) ? { optimisation, spillDirectory, labels } : undefined;
}

/**
 * With what pi is started. A session that lists its tools gets those of its parts too: pi knows no others then.
 */
export function spawnOptions(options: StoredOptions, parts: PartsConfig | undefined): PiOptions {
  const { name: _name, optimisation: _optimisation, tools, ...rest } = options;
  if (tools === undefined) return rest;
  // Additions alone leave out nothing, and pi does not take them beside names.
  if (tools.every((tool) => tool.startsWith("+"))) return { ...rest, tools };
  const added = parts === undefined ? [] : toolsOf(parts.optimisation).filter((tool) => !tools.includes(tool));
  return { ...rest, tools: [...tools, ...added] };
}

/** The tools that the parts bring along. */
function toolsOf({ masking, toolResults, skills, dynamicTools }: OptimisationConfig): string[] {
  return [
    ...(masking.enabled || toolResults.enabled ? [RECALL_TOOL] : []),
    ...(skills.enabled && skills.mode === "digest" ? [SKILL_TOOL] : []),
    ...(dynamicTools.enabled && dynamicTools.mode !== "off" ? DYNAMIC_TOOLS : []),
  ];
}

const given = new WeakMap<Child, string>();

/** Notes what a child goes by. */
export function gaveParts(child: Child, parts: PartsConfig | undefined): void {
  given.set(child, JSON.stringify(parts ?? null));
}

/** Whether a child goes by this already. */
export function hasParts(child: Child, parts: PartsConfig | undefined): boolean {
  return (given.get(child) ?? "null") === JSON.stringify(parts ?? null);
}
