import type { AvailableCommand } from "@agentclientprotocol/sdk";
import type { Port } from "./port.ts";

/** The session that a command is for. */
export interface BuiltinSubject {
  readonly port: Port;
  readonly sessionId: string;
  /** Writes an exported session to a file, and returns its path. Undefined: the client has no files here. */
  readonly saveExport: ((path: string | undefined, html: string) => Promise<string>) | undefined;
}

/** A command of this agent, which pi does not have in RPC mode. */
export interface Builtin {
  readonly name: string;
  /** Resolves with what to tell the user. */
  perform(subject: BuiltinSubject): Promise<string | undefined>;
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

/** pi's own commands: templates, skills, and commands of extensions. */
export async function commandsOf(port: Port, sessionId: string): Promise<AvailableCommand[]> {
  const { commands } = await port.call("session/getCommands", { sessionId });
  return commands.map(({ name, description = "" }) => ({ name, description, input: { hint: "arguments" } }));
}

/** The command that a prompt is, unless pi has one of this name. */
export function builtinIn(text: string): Builtin | undefined {
  const [, name = "", words = ""] = /^\/(\w+)(?:\s+([\s\S]*))?$/.exec(text.trimEnd()) ?? [];
  const perform = Object.hasOwn(performers, name) ? performers[name] : undefined;
  return perform === undefined ? undefined : { name, perform: (subject) => perform(subject, words.trim()) };
}

type Perform = (subject: BuiltinSubject, words: string) => Promise<string | undefined>;

const performers: Readonly<Record<string, Perform>> = {
  compact: async ({ port, sessionId }, words) => {
    await port.call("session/compact", { sessionId, ...(words === "" ? {} : { customInstructions: words }) });
    return undefined;
  },
  name: async ({ port, sessionId }, name) => {
    if (name === "") return "Write the name after the command: /name NAME";
    await port.call("session/rename", { sessionId, name });
    return `The session's name is now “${name}”.`;
  },
  session: async ({ port, sessionId }) => {
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
  export: async ({ port, sessionId, saveExport }, path) => {
    if (saveExport === undefined) return "This client has no files on the daemon's machine.";
    if (path !== "" && !path.endsWith(".html"))
      return "Write a file that ends in .html after the command: /export FILE.html";
    const { html } = await port.call("session/export", { sessionId });
    return `The session was exported: ${await saveExport(path === "" ? undefined : path, html)}`;
  },
};
