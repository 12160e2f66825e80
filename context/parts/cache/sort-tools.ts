import { isRecord } from "../../../protocol/objects.ts";
import { isDeferred, isMarkedBlock, MARK, toolName } from "./payload.ts";

/**
 * Returns the payload with its tools sorted by name and the mark on the last one, so that the load order of extensions
 * does not matter. Returns the same payload if it is already sorted.
 */
export function withSortedTools(payload: unknown): unknown {
  if (!isRecord(payload)) return payload;
  const { tools, config } = payload;
  if (Array.isArray(tools)) {
    const sorted = sortedTools(tools);
    return sorted === tools ? payload : { ...payload, tools: sorted };
  }
  if (!isRecord(config) || !Array.isArray(config["tools"])) return payload;
  const google = config["tools"].map(withSortedDeclarations);
  const isMoved = google.some((tool, at) => tool !== (config["tools"] as unknown[])[at]);
  return isMoved ? { ...payload, config: { ...config, tools: google } } : payload;
}

function withSortedDeclarations(tool: unknown): unknown {
  if (!isRecord(tool) || !Array.isArray(tool["functionDeclarations"])) return tool;
  const { functionDeclarations } = tool;
  const sorted = sortedTools(functionDeclarations);
  return sorted === functionDeclarations ? tool : { ...tool, functionDeclarations: sorted };
}

/** Deferred tools stay last in their order, because pi only appends to that list, which keeps the cache. */
function sortedTools(tools: readonly unknown[]): readonly unknown[] {
  const deferred = tools.findIndex(isDeferred);
  const end = deferred === -1 ? tools.length : deferred;
  const shown = tools.slice(0, end);
  if (shown.some((tool) => toolName(tool) === undefined)) return tools;
  const sorted = shown.toSorted((a, b) => compare(toolName(a) as string, toolName(b) as string));
  if (sorted.every((tool, at) => tool === shown[at])) return tools;
  return [...withMarkLast(sorted), ...tools.slice(end)];
}

function withMarkLast(sorted: readonly unknown[]): readonly unknown[] {
  const marked = sorted.filter(isMarkedBlock);
  const mark = (marked.at(-1) as Readonly<Record<string, unknown>> | undefined)?.[MARK];
  if (mark === undefined || (marked.length === 1 && isMarkedBlock(sorted.at(-1)))) return sorted;
  return sorted.map((tool, at) => {
    if (at === sorted.length - 1) return { ...(tool as object), [MARK]: mark };
    return isMarkedBlock(tool) ? withoutMark(tool) : tool;
  });
}

export function withoutMark(block: unknown): unknown {
  if (!isRecord(block)) return block;
  const { [MARK]: _mark, ...rest } = block;
  return rest;
}

/** Compares by code units, which is independent of the locale. */
function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
