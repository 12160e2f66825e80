import type { ExtensionContext, ToolDefinition } from "@earendil-works/pi-coding-agent";

// Types of pi's tools, with members that only newer versions have.

export type Exposure = "direct" | "model-only" | "codemode" | "deferred" | "hidden";

/** A tool of `pi.getAllTools()`. Older versions lack `exposure`; all their tools are direct. */
export interface PiTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: unknown;
  readonly promptGuidelines?: readonly string[] | undefined;
  readonly exposure?: Exposure;
  readonly namespace?: { readonly name?: string; readonly description?: string };
}

export interface ToolResult {
  readonly content: readonly ({ readonly type: "text"; readonly text: string } | { readonly type: "image" })[];
  readonly details?: unknown;
  readonly terminate?: boolean;
}

/** The context of a running tool. Older versions cannot run another tool. */
export interface ToolContext extends ExtensionContext {
  readonly tools?: readonly { readonly name: string }[];
  executeTool?(
    name: string,
    args: unknown,
    options: { readonly signal?: AbortSignal; readonly onUpdate?: (partial: unknown) => void },
  ): Promise<{ readonly result: ToolResult; readonly isError: boolean }>;
}

export interface Loadout {
  readonly declared: readonly { readonly name: string }[];
  getExposure(name: string): Exposure;
}

/** Fields of a tool that older versions ignore. */
export interface NewerFields {
  readonly exposure: Exposure;
  readonly prepareLoadout?: (loadout: Loadout) => { readonly hiddenDeclarations: readonly string[] } | undefined;
  readonly reachesTools?: (input: Readonly<Record<string, unknown>>) => "all" | readonly string[];
}

export type AnyToolDefinition = Omit<ToolDefinition, "parameters" | "execute"> & {
  readonly parameters: object;
  readonly execute: (
    toolCallId: string,
    params: never,
    signal: AbortSignal | undefined,
    onUpdate: ((partial: never) => void) | undefined,
    ctx: ToolContext,
  ) => Promise<ToolResult>;
} & Partial<NewerFields>;

/** Whether this pi can run and hide tools without deactivating them. */
export function hasExposures(tools: readonly PiTool[]): boolean {
  return tools.some(({ exposure }) => exposure !== undefined);
}
