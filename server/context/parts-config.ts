import type { PartsConfig } from "../../protocol/link.ts";
import { DYNAMIC_TOOLS, RECALL_TOOL, SKILL_TOOL } from "../../protocol/optimisation/config.ts";
import { isAnyOn, resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { COMPRESS_TOOL } from "../../protocol/pruning/config.ts";
import { resolvePruning } from "../../protocol/pruning/resolve.ts";
import type { Child } from "../pi/child.ts";
import type { PiOptions } from "../pi/spawn-options.ts";
import type { StoredOptions, StoredSession } from "../store/sessions.ts";

/** What the parts inside a session's pi go by. `undefined`: none is on, and pi is as it would be without us. */
export function partsOf(
  { options, labels = {}, delegatedBy }: Pick<StoredSession, "options" | "labels" | "delegatedBy">,
  spillDirectory: string,
): PartsConfig | undefined {
  if (options.optimisation === undefined && options.pruning === undefined) return undefined;
  const optimisation = resolveOptimisation(options.optimisation ?? {});
  const pruning = resolvePruning(options.pruning ?? {});
  const isPruned = pruning.enabled && (delegatedBy === undefined || pruning.childSessions);
  if (!isPruned && !isAnyOn(optimisation)) return undefined;
  return { optimisation, ...(isPruned ? { pruning } : {}), spillDirectory, labels };
}

/**
 * With what pi is started. A session that lists its tools gets those of its parts too: pi knows no others then.
 */
export function spawnOptions(options: StoredOptions, parts: PartsConfig | undefined): PiOptions {
  const { name: _name, optimisation: _optimisation, pruning: _pruning, tools, ...rest } = options;
  if (tools === undefined) return rest;
  // Additions alone leave out nothing, and pi does not take them beside names.
  if (tools.every((tool) => tool.startsWith("+"))) return { ...rest, tools };
  const added = parts === undefined ? [] : toolsOf(parts).filter((tool) => !tools.includes(tool));
  return { ...rest, tools: [...tools, ...added] };
}

/** The tools that the parts bring along. */
function toolsOf({ optimisation: { masking, toolResults, skills, dynamicTools }, pruning }: PartsConfig): string[] {
  return [
    ...(masking.enabled || toolResults.enabled || pruning !== undefined ? [RECALL_TOOL] : []),
    ...(pruning === undefined ? [] : [COMPRESS_TOOL]),
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

/** Whether some part may have left texts of the session aside. */
export function hasPartOptions({ optimisation, pruning }: StoredOptions): boolean {
  return optimisation !== undefined || pruning !== undefined;
}
