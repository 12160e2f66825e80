import type { Mistake } from "../configuration/mistakes.ts";
import { nearest } from "../configuration/nearest.ts";
import { namedTools } from "./contradictions.ts";
import type { OptimisationOptions } from "./options.ts";
import { resolveOptimisation } from "./resolve.ts";

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
