import { basename } from "node:path";
import type { ExtensionContext, ToolResultEvent } from "@earendil-works/pi-coding-agent";
import { fromLeaf } from "../../../extension/branch-view.ts";
import { pathsIn, wholePath } from "../../pruning/protection/paths.ts";
import { editTools, readTools, writeTools } from "../../pruning/strategies/touches.ts";

/** A file that was edited longer ago is cut like others. Entries. */
const maxRead = 5_000;

/**
 * Whether the model needs all of what it has read: it asked for certain lines, reads a skill, or edits or writes this
 * file on the branch, including calls of the same message.
 */
export function isWholeRead(
  { toolName, input }: Pick<ToolResultEvent, "toolName" | "input">,
  { sessionManager, cwd }: Pick<ExtensionContext, "sessionManager" | "cwd">,
): boolean {
  if (!readTools.has(toolName)) return false;
  const { offset, limit } = input;
  if ((offset ?? limit ?? undefined) !== undefined) return true;
  const read = pathsIn(input).map((path) => wholePath(path, cwd));
  if (read.some((path) => basename(path) === "SKILL.md")) return true;
  for (const entry of fromLeaf(sessionManager, maxRead)) {
    if (entry.type !== "message" || entry.message.role !== "assistant") continue;
    for (const block of entry.message.content) {
      if (block.type !== "toolCall" || !(editTools.has(block.name) || writeTools.has(block.name))) continue;
      if (pathsIn(block.arguments).some((path) => read.includes(wholePath(path, cwd)))) return true;
    }
  }
  return false;
}
