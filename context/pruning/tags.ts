import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { taggedId, tagOf } from "../../extension/message-tag.ts";
import type { AgentMessage } from "../../extension/pi-types.ts";
import type { GivenMessageIds } from "./ids.ts";
import type { PruningServices } from "./pruning-services.ts";
import { hasId } from "./spoken.ts";

type Host = Pick<PruningServices, "pipeline" | "entries" | "off" | "pruning"> & { readonly ids: GivenMessageIds };
type Assistant = Extract<AgentMessage, { role: "assistant" }>;
type Texts = Extract<AgentMessage, { role: "user" | "custom" | "toolResult" }>;

/** Appends to each message the tag with its id. */
export function addTags(host: Host): void {
  const commands = new WeakMap<AgentMessage, AgentMessage>();
  const tagged = new WeakMap<AgentMessage, { readonly id: string; readonly made: AgentMessage }>();

  host.pipeline.use(
    "context_with_system",
    "bash",
    (messages, ctx) => {
      if (host.off(ctx) !== undefined || !messages.some(isCommand)) return undefined;
      return messages.map((message) => {
        if (!isCommand(message) || message.excludeFromContext === true) return message;
        if (host.entries.entryOf(message) === undefined) return message;
        const made = commands.get(message) ?? spoken(message);
        commands.set(message, made);
        host.entries.copied(made, message);
        return made;
      });
    },
    "tags",
  );

  host.pipeline.use(
    "context_with_system",
    "tags",
    (messages, ctx) => {
      if (host.off(ctx) !== undefined) return undefined;
      return messages.map((message) => {
        const id = idFor(message, ctx);
        if (id === undefined) return message;
        const known = tagged.get(message);
        const made = known?.id === id ? known.made : withTag(message, id);
        if (known?.made !== made) tagged.set(message, { id, made });
        host.entries.copied(made, message);
        return made;
      });
    },
    "ids",
  );

  function idFor(message: AgentMessage, ctx: ExtensionContext): string | undefined {
    if (!hasId(message, host.pruning())) return undefined;
    const entryId = host.entries.entryOf(message);
    return entryId === undefined ? undefined : host.ids.give(entryId, ctx);
  }
}

/** Returns the message with the tag of this id and no other tag. */
export function withTag(message: AgentMessage, id: string): AgentMessage {
  const tag = { type: "text" as const, text: tagOf(id) };
  switch (message.role) {
    case "user":
    case "custom":
    case "toolResult":
      return { ...message, content: [...blocksOf(message), tag] } as AgentMessage;
    case "assistant":
      return { ...message, content: withTagBlock(message, tag) };
    default:
      return message;
  }
}

function blocksOf({ content }: Texts) {
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  return blocks.length > 1 ? blocks.filter((block) => !isTag(block)) : blocks;
}

/**
 * Inserts the tag as a separate block after the text and before the first call: services require the order reasoning,
 * text, calls, and signed blocks must not change.
 */
function withTagBlock({ content }: Assistant, tag: { readonly type: "text"; readonly text: string }) {
  const blocks = content.length > 1 ? content.filter((block) => !isTag(block)) : content;
  const call = blocks.findIndex(({ type }) => type === "toolCall");
  const end = call < 0 ? blocks.length : call;
  const text = blocks.slice(0, end).findLastIndex(({ type }) => type === "text");
  return blocks.toSpliced(text < 0 ? end : text + 1, 0, tag);
}

function isTag(block: { readonly type: string; readonly text?: unknown }): boolean {
  return block.type === "text" && taggedId(block.text) !== undefined;
}

function isCommand(message: AgentMessage): message is Extract<AgentMessage, { role: "bashExecution" }> {
  return message.role === "bashExecution";
}

function spoken(message: Extract<AgentMessage, { role: "bashExecution" }>): AgentMessage {
  return { role: "user", content: [{ type: "text", text: commandText(message) }], timestamp: message.timestamp };
}

type Command = Extract<AgentMessage, { role: "bashExecution" }>;

/** The text that pi sends for a command of the user, word for word, so that requests do not differ. */
export function commandText({ command, output, cancelled, exitCode, truncated, fullOutputPath }: Command): string {
  const shown = output === "" ? "(no output)" : `\`\`\`\n${output}\n\`\`\``;
  const isFailed = exitCode !== undefined && exitCode !== null && exitCode !== 0;
  const end = cancelled ? "\n\n(command cancelled)" : isFailed ? `\n\nCommand exited with code ${exitCode}` : "";
  const rest = truncated && fullOutputPath ? `\n\n[Output truncated. Full output: ${fullOutputPath}]` : "";
  return `Ran \`${command}\`\n${shown}${end}${rest}`;
}
