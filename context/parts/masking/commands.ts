import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { BranchView } from "../../../extension/branch-view.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { PartContext } from "../optimisation/part-context.ts";
import { placeholderOf } from "../recall/placeholder.ts";
import { recallIdOf } from "../recall/record.ts";

type CommandMessage = Extract<AgentMessage, { role: "bashExecution" }>;

/** Whether a request may have commands that are masked: only then are its messages' entries looked up. */
export function hasMaskedCommands(
  { recall }: PartContext,
  messages: readonly AgentMessage[],
  { sessionManager }: ExtensionContext,
): boolean {
  return messages.some(isCommand) && recall.registry.all(sessionManager).length > 0;
}

/**
 * Replaces outputs of user commands by placeholders if a record on the branch masks them, because pi cannot edit entries
 * of commands.
 */
export function withMaskedCommands(
  host: PartContext,
  messages: readonly AgentMessage[],
  ctx: ExtensionContext,
): readonly AgentMessage[] | undefined {
  if (!hasMaskedCommands(host, messages, ctx)) return undefined;
  const { registry } = host.recall;
  const branch = new BranchView(ctx.sessionManager);
  let isChanged = false;
  const made = messages.map((message) => {
    const entryId = isCommand(message) ? host.entries.entryOf(message) : undefined;
    if (entryId === undefined || !isCommand(message)) return message;
    const record = registry.ofEntry(entryId, ctx.sessionManager).find(({ heldBy }) => branch.has(heldBy));
    if (record === undefined) return message;
    isChanged = true;
    const { output: text, exitCode = 0, cancelled } = message;
    const isError = cancelled || exitCode !== 0;
    const recallId = recallIdOf(record.number);
    return maskedCommand(
      message,
      placeholderOf({ tool: record.tool, text, images: 0, isError, why: "masked", recallId }),
    );
  });
  return isChanged ? made : undefined;
}

/** Keeps the command and its exit state. */
export function maskedCommand(message: CommandMessage, placeholder: string): CommandMessage {
  const { fullOutputPath: _path, ...rest } = message;
  return { ...rest, output: placeholder, truncated: false };
}

function isCommand(message: AgentMessage): message is CommandMessage {
  return message.role === "bashExecution";
}
