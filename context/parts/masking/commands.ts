import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { BranchView } from "../../../extension/branch-view.ts";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { RequestEntries } from "../map/request-entries.ts";
import { placeholderOf } from "../recall/placeholder.ts";
import type { Recall } from "../recall/recall.ts";
import { recallIdOf } from "../recall/record.ts";

type CommandMessage = Extract<AgentMessage, { role: "bashExecution" }>;

export interface MaskedCommandsNeeds {
  readonly recall: Pick<Recall, "registry">;
  readonly entries: Pick<RequestEntries, "need" | "entryOf">;
}

/** Replaces masked outputs of user commands in each request, because pi cannot edit entries of commands. */
export function addMaskedCommands({ pipeline }: Pick<HostPort, "pipeline">, needs: MaskedCommandsNeeds): void {
  needs.entries.need((messages, ctx) => hasMaskedCommands(needs, messages, ctx));
  pipeline.use("context_with_system", "bash", (messages, ctx) => withMaskedCommands(needs, messages, ctx), "masking");
}

/** Whether a request may have masked commands; only then its messages are matched with entries. */
function hasMaskedCommands(
  { recall }: MaskedCommandsNeeds,
  messages: readonly AgentMessage[],
  { sessionManager }: ExtensionContext,
): boolean {
  return messages.some(isCommand) && recall.registry.all(sessionManager).length > 0;
}

/** Replaces outputs of user commands by placeholders if a record on the branch masks them. */
function withMaskedCommands(
  needs: MaskedCommandsNeeds,
  messages: readonly AgentMessage[],
  ctx: ExtensionContext,
): readonly AgentMessage[] | undefined {
  if (!hasMaskedCommands(needs, messages, ctx)) return undefined;
  const { registry } = needs.recall;
  const branch = new BranchView(ctx.sessionManager);
  let isChanged = false;
  const made = messages.map((message) => {
    const entryId = isCommand(message) ? needs.entries.entryOf(message) : undefined;
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
