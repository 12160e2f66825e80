import { isObject } from "../../../extension/pi-types.ts";

/** The tool that made the result: `execute_tool` names the tool that it has run. */
export function executedTool({ toolName, details }: { readonly toolName: string; readonly details?: unknown }): string {
  if (toolName !== "execute_tool" || !isObject(details)) return toolName;
  const { tool } = details;
  return typeof tool === "string" ? tool : toolName;
}
