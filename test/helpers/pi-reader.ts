import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { ContextTarget } from "../../context/document/document.ts";

/** A message as pi gives it to a model's adapter. */
export interface SeenMessage {
  readonly role: string;
  readonly [field: string]: unknown;
}

interface SessionReader {
  buildSessionContext(entries: readonly unknown[]): { readonly messages: readonly SeenMessage[] };
}
interface Converter {
  convertToLlm(messages: readonly SeenMessage[]): readonly SeenMessage[];
}
interface Transformer {
  transformMessages(messages: readonly SeenMessage[], model: unknown): readonly SeenMessage[];
}

const packages = join(import.meta.dirname, "..", "..", "node_modules", "@earendil-works");

/** Where the modules of the installed pi are. */
export const installedPi = join(packages, "pi-coding-agent", "dist", "core");

/**
 * pi's own reading of session files, to compare an export with: the code that runs in every pi, without a process.
 * It returns the messages for the model at the last entry, without system messages and without messages that services
 * refuse: results whose call was removed by an edit or a failure. Documents also lack: reasoning of other models,
 * and carriers, which the helper keeps from the model.
 */
export async function readerOfPi(
  modules: string,
  target: ContextTarget,
): Promise<(entries: readonly unknown[]) => readonly unknown[]> {
  const { buildSessionContext } = await load<SessionReader>(join(modules, "session-manager.js"));
  const { convertToLlm } = await load<Converter>(join(modules, "messages.js"));
  // Both versions have the same rules for messages to a model, in a package that only one of them includes.
  const { transformMessages } = await load<Transformer>(
    join(packages, "pi-ai", "dist", "api", "transform-messages.js"),
  );
  return (entries) => {
    const { messages } = buildSessionContext(entries.filter((entry) => (entry as { type: string }).type !== "session"));
    const shown = convertToLlm(messages.filter(({ customType }) => customType !== "pi-rpcd.carrier"))
      .filter(({ role }) => role !== "system")
      .map((message) => withoutForeignReasoning(message, target));
    return withoutOrphans(transformMessages(shown, { ...target, input: ["text", "image"] }))
      .map(({ role, content, toolCallId, toolName, isError }) => ({
        role,
        content: role === "assistant" ? withoutBlanks(content) : (content as readonly unknown[]),
        toolCallId,
        toolName,
        isError,
      }))
      .filter(({ role, content }) => role !== "assistant" || content.length > 0);
  };
}

/**
 * The adapters of every service leave these out of an assistant's message, and omit a message that has nothing else.
 */
function withoutBlanks(content: unknown): readonly unknown[] {
  return (content as { type: string; text?: string }[]).filter(
    ({ type, text }) => type !== "text" || text?.trim() !== "",
  );
}

function withoutForeignReasoning(message: SeenMessage, { id }: ContextTarget): SeenMessage {
  if (message.role !== "assistant" || message["model"] === id) return message;
  const content = (message["content"] as { type: string }[]).filter(({ type }) => type !== "thinking");
  return { ...message, content };
}

function withoutOrphans(messages: readonly SeenMessage[]): readonly SeenMessage[] {
  let open = new Set<unknown>();
  return messages.filter(({ role, content, toolCallId }) => {
    if (role === "toolResult") return open.delete(toolCallId);
    if (role === "assistant") open = new Set((content as { id?: string }[]).map(({ id }) => id));
    return true;
  });
}

async function load<Module>(path: string): Promise<Module> {
  return (await import(pathToFileURL(path).href)) as Module;
}
