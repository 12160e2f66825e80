import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { isRecord } from "../../../protocol/objects.ts";
import { DYNAMIC_TOOLS, RECALL_TOOL, SKILL_TOOL } from "../../../protocol/optimisation/config.ts";
import type { PiTool } from "./pi-tools.ts";
import type { SearchableTool } from "./tool-index.ts";

/** Tools of this extension that texts in the context mention; the model always needs them. */
const alwaysDeclared: ReadonlySet<string> = new Set([...DYNAMIC_TOOLS, RECALL_TOOL, SKILL_TOOL, "compress"]);
/** Maximum number of tools; others are ignored. */
const maxTools = 5_000;
const maxNodes = 400;
const maxDepth = 8;

type Tools = Pick<ExtensionAPI, "getAllTools" | "getActiveTools">;

export function isOurs(name: string): boolean {
  return (DYNAMIC_TOOLS as readonly string[]).includes(name);
}

/** Whether a tool is always declared to the model. */
export function isKept(name: string, keep: readonly string[]): boolean {
  return alwaysDeclared.has(name) || keep.includes(name);
}

export function allTools(pi: Tools): readonly PiTool[] {
  return (pi.getAllTools() as readonly PiTool[]).slice(0, maxTools);
}

/**
 * Returns the tools that a model can reach, declared or not: active ones, deferred ones, and those that were
 * deactivated by this extension. Excludes tools that were switched off otherwise.
 */
export function reachableTools(pi: Tools, taken: ReadonlySet<string>): readonly PiTool[] {
  const active = new Set(pi.getActiveTools());
  return allTools(pi).filter(({ name, exposure }) => {
    if (isOurs(name) || exposure === "hidden") return false;
    return active.has(name) || exposure === "deferred" || exposure === "codemode" || taken.has(name);
  });
}

/** Returns the searchable texts of a tool. */
export function searchable({ name, description, parameters, namespace }: PiTool): SearchableTool {
  const words: string[] = [];
  collectWords(parameters, words, { nodes: maxNodes }, 0);
  const group = [namespace?.name, namespace?.description].filter((one) => typeof one === "string").join(" ");
  return { name, description: String(description ?? ""), parameters: words.join(" "), group };
}

/** Collects names and descriptions from an untrusted schema. */
function collectWords(schema: unknown, words: string[], left: { nodes: number }, depth: number): void {
  if (!isRecord(schema) || depth > maxDepth || left.nodes <= 0) return;
  left.nodes -= 1;
  if (typeof schema["description"] === "string") words.push(schema["description"].slice(0, 500));
  const { properties } = schema;
  if (isRecord(properties)) {
    for (const [name, property] of Object.entries(properties)) {
      if (left.nodes <= 0) return;
      words.push(name.slice(0, 128));
      collectWords(property, words, left, depth + 1);
    }
  }
  collectWords(schema["items"], words, left, depth + 1);
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const variants = schema[key];
    if (Array.isArray(variants)) for (const variant of variants) collectWords(variant, words, left, depth + 1);
  }
}
