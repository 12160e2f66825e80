import type { PartsConfig } from "../../protocol/link.ts";
import { DYNAMIC_TOOLS, RECALL_TOOL, SKILL_TOOL } from "../../protocol/optimisation/config.ts";
import { isAnyOn, resolveOptimisation } from "../../protocol/optimisation/resolve.ts";
import { COMPRESS_TOOL } from "../../protocol/pruning/config.ts";
import { resolvePruning } from "../../protocol/pruning/resolve.ts";
import type { Child } from "../pi/child.ts";
import type { PiOptions } from "../pi/spawn-options.ts";
import type { StoredOptions, StoredSession } from "../store/stored-session.ts";

/** The configuration of the parts inside a session's pi. `undefined`: no part is on, and pi runs unchanged. */
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
 * pi's start options. A session that lists its tools also gets those of its parts, because pi then knows no others.
 */
export function spawnOptions(options: StoredOptions, parts: PartsConfig | undefined): PiOptions {
  const { name: _name, optimisation: _optimisation, pruning: _pruning, tools, ...rest } = options;
  if (tools === undefined) return rest;
  // Additions alone exclude nothing, and pi does not accept them together with names.
  if (tools.every((tool) => tool.startsWith("+"))) return { ...rest, tools };
  const added = parts === undefined ? [] : toolsOf(parts).filter((tool) => !tools.includes(tool));
  return { ...rest, tools: [...tools, ...added] };
}

/** The tools that the parts add. */
function toolsOf({ optimisation: { masking, toolResults, skills, dynamicTools }, pruning }: PartsConfig): string[] {
  return [
    ...(masking.enabled || toolResults.enabled || pruning !== undefined ? [RECALL_TOOL] : []),
    ...(pruning === undefined ? [] : [COMPRESS_TOOL]),
    ...(skills.enabled && skills.mode === "digest" ? [SKILL_TOOL] : []),
    ...(dynamicTools.enabled && dynamicTools.mode !== "off" ? DYNAMIC_TOOLS : []),
  ];
}

const given = new WeakMap<Child, string>();

/** Records the configuration of a child. */
export function rememberParts(child: Child, parts: PartsConfig | undefined): void {
  given.set(child, JSON.stringify(parts ?? null));
}

/** Whether a child is known to have this configuration. */
export function hasParts(child: Child, parts: PartsConfig | undefined): boolean {
  const known = given.get(child) ?? (child.restoredAt === undefined ? "null" : undefined);
  return known === JSON.stringify(parts ?? null);
}

/** Whether a part may have moved texts of the session to files. */
export function hasPartOptions({ optimisation, pruning }: StoredOptions): boolean {
  return optimisation !== undefined || pruning !== undefined;
}
