import type { Places } from "../../../extension/engine-port.ts";

/** The definitions of the tools that the model has, about as services are sent them. */
export function activeTools({ pi }: Pick<Places, "pi">): string {
  const active = new Set(pi.getActiveTools());
  const tools = pi.getAllTools().filter(({ name }) => active.has(name));
  return tools.map(({ name, description, parameters }) => JSON.stringify({ name, description, parameters })).join("\n");
}
