import { loadVocabulary } from "../../../provider/cache/vocabulary.ts";
import type { LogEntry } from "../../../provider/log.ts";

/** The tokens that each request contains before its conversation. */
export interface Standing {
  readonly system: number;
  /** By the tool's name. */
  readonly tools: ReadonlyMap<string, number>;
}

/** Counts the system prompt and the tools of a request in Anthropic's format. */
export async function standingOf(request: LogEntry | undefined): Promise<Standing> {
  if (request === undefined) throw new Error("No request has instructions.");
  const { encode } = await loadVocabulary("cl100k_base");
  const tools = (request.body["tools"] ?? []) as readonly { readonly name: string }[];
  const system = request.messages.flatMap(({ role, texts }) => (role === "system" ? texts : []));
  return {
    system: encode(system.join("\n")).length,
    tools: new Map(tools.map((tool) => [tool.name, encode(JSON.stringify(tool)).length])),
  };
}
