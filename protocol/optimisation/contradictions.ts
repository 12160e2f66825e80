import type { Mistake } from "../configuration/mistakes.ts";
import { wildcardOf } from "../glob.ts";
import { DYNAMIC_TOOLS, type OptimisationConfig, RECALL_TOOL, SKILL_TOOL } from "./config.ts";
import type { OptimisationOptions, ToolResultPolicy } from "./options.ts";

const root = "optimisation";

/** Contradictions within one layer. */
export function contradictionsIn(layer: OptimisationOptions): Mistake[] {
  const { skills, compaction, dynamicTools } = layer;
  const switches = [
    ["skills", "mode", skills],
    ["compaction", "route", compaction],
    ["dynamicTools", "mode", dynamicTools],
  ] as const;
  return switches
    .filter(([, key, knobs]) => knobs?.enabled === true && (knobs as Readonly<Record<string, unknown>>)[key] === "off")
    .map(([part, key]) => ({
      place: [root, part, key],
      why: `"off" contradicts ${root}.${part}.enabled, which is true`,
    }));
}

/** Contradictions in the merged configuration. Only parts that are on are checked. */
export function contradictionsOf({ toolResults, contextFiles }: OptimisationConfig): Mistake[] {
  const policies = toolResults.enabled ? Object.entries(toolResults.tools) : [];
  const sections = contextFiles.enabled ? contextFiles.sections : [];
  return [
    ...policies.flatMap(([tool, policy]) => wrongPolicy([root, "toolResults", "tools", tool], policy)),
    ...sections.flatMap(({ label, path }, at) =>
      label === undefined && path === undefined
        ? [{ place: [root, "contextFiles", "sections", at], why: "the condition is missing: set label or path" }]
        : [],
    ),
  ];
}

function wrongPolicy(place: Mistake["place"], { keep, head = 0, tail = 0, above }: ToolResultPolicy): Mistake[] {
  if (keep === "none") return [];
  const kept = keep === "head" ? head : keep === "tail" ? tail : head + tail;
  const needed = keep === "headTail" ? (["head", "tail"] as const) : ([keep] as const);
  const lacking = needed.find((key) => ({ head, tail })[key] === 0);
  if (lacking !== undefined)
    return [{ place: [...place, lacking], why: `keep is "${keep}", but ${lacking} is missing` }];
  if (above === undefined || above >= kept) return [];
  return [{ place: [...place, "above"], why: `${above} is below the ${kept} characters that are kept` }];
}

/** The options that determine a session's tools. */
export interface GivenTools {
  readonly tools?: readonly string[] | undefined;
  readonly excludeTools?: readonly string[] | undefined;
  readonly noTools?: "all" | "builtin" | undefined;
}

/**
 * Tools that a layer names and that the session cannot have. Only this layer's own names are checked: the daemon's
 * configuration is for sessions of every kind.
 */
export function absentTools(layer: OptimisationOptions, given: GivenTools): Mistake[] {
  return namedTools(layer).flatMap(([place, tool]) => {
    const why = whyAbsent(tool, given);
    return why === undefined ? [] : [{ place, why: `the session has no tool "${tool}": ${why}` }];
  });
}

/** The tools that a layer names, and where, without patterns and without tools of our own parts. */
export function namedTools({
  masking,
  toolResults,
  dynamicTools,
}: OptimisationOptions): (readonly [place: Mistake["place"], tool: string])[] {
  const named: readonly (readonly [place: Mistake["place"], tool: string])[] = [
    ...(masking?.excludeTools ?? []).map((tool, at) => [[root, "masking", "excludeTools", at], tool] as const),
    ...Object.keys(toolResults?.tools ?? {}).map((tool) => [[root, "toolResults", "tools", tool], tool] as const),
    ...(dynamicTools?.keep ?? []).map((tool, at) => [[root, "dynamicTools", "keep", at], tool] as const),
  ];
  return named.filter(([, tool]) => !tool.includes("*") && !ours.has(tool));
}

/** Removed content could not be recalled. */
export function lackingRecall(config: OptimisationConfig, { excludeTools = [] }: GivenTools): Mistake[] {
  const { masking, toolResults, skills, dynamicTools } = config;
  const needs = [
    ["masking", RECALL_TOOL, masking.enabled],
    ["toolResults", RECALL_TOOL, toolResults.enabled],
    ["skills", SKILL_TOOL, skills.enabled && skills.mode === "digest"],
    ...DYNAMIC_TOOLS.map(
      (tool) => ["dynamicTools", tool, dynamicTools.enabled && dynamicTools.mode === "three"] as const,
    ),
  ] as const;
  return needs
    .filter(([, tool, isNeeded]) => isNeeded && isAmong(tool, excludeTools))
    .map(([part, tool]) => ({
      place: [root, part],
      why: `needs the tool "${tool}", which excludeTools removes`,
    }));
}

const ours: ReadonlySet<string> = new Set([RECALL_TOOL, SKILL_TOOL, ...DYNAMIC_TOOLS, "compress"]);
const builtin: ReadonlySet<string> = new Set(["read", "bash", "powershell", "edit", "write", "grep", "find", "ls"]);

function whyAbsent(tool: string, { tools, excludeTools = [], noTools }: GivenTools): string | undefined {
  if (isAmong(tool, excludeTools)) return "excludeTools removes it";
  // A list of only additions restricts nothing. Tools of MCP servers are not restricted by other names.
  const list = tools?.every((name) => name.startsWith("+")) === true ? undefined : tools;
  if (
    isAmong(
      tool,
      (tools ?? []).map((name) => name.replace(/^\+/, "")),
    )
  )
    return undefined;
  if (noTools === "all") return "noTools removes it";
  if (noTools === "builtin" && builtin.has(tool)) return "noTools removes it";
  if (list !== undefined && !tool.startsWith("mcp__")) return "it is not in tools";
  return undefined;
}

/** As in pi, `*` matches any characters. */
function isAmong(tool: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => wildcardOf(pattern)(tool));
}
