import type { AvailableCommand } from "@agentclientprotocol/sdk";
import type { Port } from "./port.ts";

/** A command of this agent, which pi does not have in RPC mode. */
export interface Builtin {
  /** Resolves with what to tell the user. */
  perform(port: Port, sessionId: string): Promise<string | undefined>;
}

export const builtins: readonly AvailableCommand[] = [
  {
    name: "compact",
    description: "Replaces the old part of the context by a summary",
    input: { hint: "what to keep" },
  },
  { name: "name", description: "Names the session", input: { hint: "the name" } },
  { name: "session", description: "Shows the session's id, file, messages, tokens and cost" },
  { name: "export", description: "Writes the session as HTML", input: { hint: "the file" } },
];

/** The command that a prompt is. pi's own commands come first. */
export function builtinIn(text: string, piCommands: readonly AvailableCommand[]): Builtin | undefined {
  const [, name, words = ""] = /^\/(\w+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  if (piCommands.some((command) => command.name === name)) return undefined;
  const perform = performers[name ?? ""];
  return perform === undefined ? undefined : { perform: (port, sessionId) => perform(port, sessionId, words.trim()) };
}

type Perform = (port: Port, sessionId: string, words: string) => Promise<string | undefined>;

const performers: Readonly<Record<string, Perform>> = {
  compact: async (port, sessionId, words) => {
    await port.call("session/compact", { sessionId, ...(words === "" ? {} : { customInstructions: words }) });
    return undefined;
  },
  name: async (port, sessionId, name) => {
    if (name === "") return "Write the name after the command: /name NAME";
    await port.call("session/rename", { sessionId, name });
    return `The session's name is now “${name}”.`;
  },
  session: async (port, sessionId) => {
    const [{ file, cwd }, { totalMessages, tokens, cost }] = await Promise.all([
      port.call("session/get", { sessionId }),
      port.call("session/getStats", { sessionId }),
    ]);
    const rows = [
      ["Session", sessionId],
      ["Directory", cwd],
      ["File", file],
      ["Messages", totalMessages],
      ["Tokens", `${tokens.input} in, ${tokens.output} out, ${tokens.cacheRead} from the cache`],
      ["Cost", `${cost.toFixed(4)} USD`],
    ];
    return rows.map(([name, value]) => `- ${name}: ${value}`).join("\n");
  },
  export: async (port, sessionId, path) => {
    const { data } = await port.call("session/command", {
      sessionId,
      command: { type: "export_html", ...(path === "" ? {} : { outputPath: path }) },
    });
    return `The session was exported: ${String((data as { readonly path?: unknown } | undefined)?.path)}`;
  },
};
