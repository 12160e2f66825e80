import type { AnyToolDefinition, Loadout } from "./pi-tools.ts";
import { hiddenNote, type ToolSearch } from "./tool-search.ts";

// These definitions never change within a session, so they do not depend on the available tools. Each request pays for
// them, so limits are in `ToolSearch` instead of the schemas.

/** The definitions of the three tools. `hidden` returns the declarations to omit. */
export function threeTools(
  search: ToolSearch,
  hidden: (loadout: Loadout) => readonly string[],
): readonly AnyToolDefinition[] {
  return [
    {
      name: "search_tools",
      label: "Search tools",
      description: "Finds tools that are not declared by what they do.",
      promptSnippet: "Find further tools by what they do",
      promptGuidelines: [hiddenNote],
      parameters: {
        type: "object",
        properties: {
          query: { type: "string" },
          limit: { type: "integer" },
        },
        required: ["query"],
      },
      exposure: "model-only",
      reachesTools: () => "all",
      execute: (_callId, { query, limit }: { query: string; limit?: number }) => search.search(query, limit),
    },
    {
      name: "describe_tools",
      label: "Describe tools",
      description: "Gives full descriptions and JSON Schemas of up to 8 found tools.",
      promptSnippet: "Show what tools take, before execute_tool",
      parameters: {
        type: "object",
        properties: {
          ids: { type: "array", items: { type: "string" } },
        },
        required: ["ids"],
      },
      exposure: "model-only",
      reachesTools: ({ ids }) => (Array.isArray(ids) ? ids.filter((one) => typeof one === "string") : []),
      execute: (_callId, { ids }: { ids: readonly string[] }) => search.describe(ids),
    },
    {
      name: "execute_tool",
      label: "Execute tool",
      description: "Runs a found tool.",
      promptSnippet: "Run a tool that was found by search_tools",
      parameters: {
        type: "object",
        properties: {
          id: { type: "string" },
          params: { type: "object" },
        },
        required: ["id", "params"],
      },
      prepareArguments: withParsedParams,
      exposure: "model-only",
      reachesTools: ({ id: name }) => (typeof name === "string" ? [name] : []),
      prepareLoadout: (loadout) => {
        const hiddenDeclarations = hidden(loadout);
        return hiddenDeclarations.length === 0 ? undefined : { hiddenDeclarations };
      },
      execute: (_callId, given: { id: string; params: Readonly<Record<string, unknown>> }, signal, onUpdate, ctx) =>
        search.execute(given, { signal, onUpdate, ctx }),
    },
  ];
}

/** Some models write nested objects as JSON text. */
function withParsedParams(args: unknown): never {
  if (typeof args !== "object" || args === null || !("params" in args)) return args as never;
  const params = args.params ?? {};
  if (typeof params !== "string") return { ...args, params } as never;
  try {
    return { ...args, params: JSON.parse(params) as unknown } as never;
  } catch {
    return args as never;
  }
}
