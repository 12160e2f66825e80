import type {
  AvailableCommand,
  ContentBlock,
  SessionConfigOption,
  SessionUpdate,
  ToolCallContent,
} from "@agentclientprotocol/sdk";
import type {
  ContentBlock as BlockOfTwo,
  AvailableCommand as CommandOfTwo,
  ToolCallContent as ContentOfTwo,
  SessionConfigOption as OptionOfTwo,
  SessionUpdate as UpdateOfTwo,
} from "@agentclientprotocol/sdk/experimental/v2";
import { isRecord } from "../../protocol/objects.ts";
import { ToolCallIds } from "../updates/told.ts";
import { filePatch, patchFrom } from "./git-patch.ts";

type Meta = Readonly<Record<string, unknown>>;
type TextKind = "user" | "agent" | "thought";
type ToolUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

interface Message {
  readonly kind: TextKind;
  /** The id in version 1. */
  readonly given: string;
  readonly messageId: string;
  endsWithText: boolean;
}

/**
 * Updates of version 1 as those of version 2. There a message has one place in the conversation, so that a text after a
 * tool call is a message of its own. Its first piece replaces what the client has under the same id: after a replay that is
 * the same message.
 */
export class UpdateEncoder {
  readonly #ids: Readonly<Record<TextKind, ToolCallIds>> = {
    user: new ToolCallIds(),
    agent: new ToolCallIds(),
    thought: new ToolCallIds(),
  };
  /** The message that the next piece may be added to. */
  #open: Message | undefined;
  /** The messages that the blocks of an answer belong to: the model can go on with an earlier one. */
  readonly #blocks = new Map<number, Message>();
  /** The id of that answer in version 1. */
  #answer: string | undefined;
  /** The tools of the tool calls that have not ended. */
  readonly #tools = new Map<string, string>();

  #lastUser: Message | undefined;

  /** The id of the last user's message. */
  get lastUserMessage(): string {
    return this.#lastUser?.messageId ?? "";
  }

  /** The id of a user's message that was told just now, or in a replay, by its id in version 1. */
  messageIdOf(given: string): string {
    return this.#lastUser?.given === given ? this.#lastUser.messageId : given;
  }

  /** `block`: which of an answer's blocks a text is of. */
  encode(update: SessionUpdate, block?: number): UpdateOfTwo[] {
    switch (update.sessionUpdate) {
      case "user_message_chunk":
        return [this.#piece("user", update)];
      case "agent_message_chunk":
        return [this.#piece("agent", update, block)];
      case "agent_thought_chunk":
        return [this.#piece("thought", update, block)];
      case "tool_call":
        this.#open = undefined;
        this.#tools.set(update.toolCallId, update.name ?? "");
        return this.#tool(update);
      case "tool_call_update":
        return this.#tool(update);
      case "compaction_update":
        this.#open = undefined;
        return [update as UpdateOfTwo];
      case "available_commands_update":
        return [
          { sessionUpdate: "available_commands_update", availableCommands: commandsOfTwo(update.availableCommands) },
        ];
      case "config_option_update":
        return [{ sessionUpdate: "config_option_update", configOptions: optionsOfTwo(update.configOptions) }];
      case "session_info_update":
      case "usage_update":
      case "notice":
        return [update as UpdateOfTwo];
      default:
        // Modes are config options.
        return [];
    }
  }

  #tool(update: ToolUpdate): UpdateOfTwo[] {
    const { toolCallId, status } = update;
    const name = this.#tools.get(toolCallId) ?? "";
    if (status === "completed" || status === "failed") this.#tools.delete(toolCallId);
    return toolUpdates(name, update);
  }

  #piece(
    kind: TextKind,
    update: { content: ContentBlock; messageId?: string | null; _meta?: Meta | null },
    block?: number,
  ): UpdateOfTwo {
    const given = update.messageId ?? "";
    const content = update.content as BlockOfTwo;
    const isText = content.type === "text";
    const known = this.#known(kind, given, block, isText);
    if (known !== undefined) {
      known.endsWithText = isText;
      if (block !== undefined) this.#blocks.set(block, known);
      return { sessionUpdate: `${wordOf(kind)}_chunk`, messageId: known.messageId, content } as UpdateOfTwo;
    }
    const messageId = this.#ids[kind].next(given);
    const message: Message = { kind, given, messageId, endsWithText: isText };
    this.#open = message;
    if (block !== undefined) {
      if (this.#answer !== given) this.#blocks.clear();
      this.#answer = given;
      this.#blocks.set(block, message);
    }
    if (kind === "user") this.#lastUser = message;
    const meta = update._meta && { _meta: update._meta };
    return { sessionUpdate: wordOf(kind), messageId, content: [content], ...meta } as UpdateOfTwo;
  }

  /** The message that a piece is added to. */
  #known(kind: TextKind, given: string, block: number | undefined, isText: boolean): Message | undefined {
    const isSame = (message: Message | undefined): boolean => message?.kind === kind && message.given === given;
    const earlier = block === undefined ? undefined : this.#blocks.get(block);
    if (isSame(earlier)) return earlier;
    const open = this.#open;
    if (!isSame(open)) return undefined;
    // A user's adjacent texts are one, so that a second one is another message of the same millisecond.
    return kind === "user" && isText && open?.endsWithText === true ? undefined : open;
  }
}

function wordOf(kind: TextKind): "user_message" | "agent_message" | "agent_thought" {
  return kind === "thought" ? "agent_thought" : `${kind}_message`;
}

/** The config options of a session. One whose value is not known is left out. */
export function optionsOfTwo(options: readonly SessionConfigOption[]): OptionOfTwo[] {
  return options.flatMap(({ id: configId, ...option }) => {
    const isKnown =
      option.type !== "select" || option.options.some((each) => "value" in each && each.value === option.currentValue);
    return isKnown ? [{ configId, ...option } as OptionOfTwo] : [];
  });
}

/** Commands by unique names without spaces: a command with another name could not be called. */
function commandsOfTwo(commands: readonly AvailableCommand[]): CommandOfTwo[] {
  const byName = new Map<string, CommandOfTwo>();
  for (const { name, description, input } of commands) {
    if (byName.has(name) || /^$|\s/.test(name)) continue;
    const hint = input?.hint;
    const text = hint === undefined ? {} : { input: { type: "text" as const, hint } };
    byName.set(name, { type: "command", name, description, ...text });
  }
  return Array.from(byName.values());
}

/** A tool call, and the terminal that shows it. Its state has messages of its own, before those of the tool call. */
function toolUpdates(name: string, { sessionUpdate: _kind, ...tool }: ToolUpdate): UpdateOfTwo[] {
  const { content, rawOutput, _meta, ...fields } = tool;
  const { terminal_info: info, terminal_output: output, terminal_exit: exit, ...meta } = _meta ?? {};
  const hasDiff = (content ?? []).some(({ type }) => type === "diff");
  const update: UpdateOfTwo = {
    sessionUpdate: "tool_call_update",
    ...fields,
    ...(content != null && { content: contentOfTwo(content, name, rawOutput) }),
    ...(rawOutput !== undefined && { rawOutput: hasDiff ? withoutPatch(rawOutput) : rawOutput }),
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  };
  // An update with an id alone says nothing.
  const isEmpty = Object.keys(update).length === 2;
  return [...terminalUpdates(info, output, exit), ...(isEmpty ? [] : [update])];
}

function terminalUpdates(info: unknown, output: unknown, exit: unknown): UpdateOfTwo[] {
  const updates: UpdateOfTwo[] = [];
  if (isRecord(info)) {
    const { terminal_id: terminalId, cwd } = info as { readonly terminal_id: string; readonly cwd: string };
    updates.push({ sessionUpdate: "terminal_update", terminalId, cwd });
  }
  if (isRecord(output)) {
    const { terminal_id: terminalId, data } = output as { readonly terminal_id: string; readonly data: string };
    const bytes = Buffer.from(data).toString("base64");
    updates.push({ sessionUpdate: "terminal_output_chunk", terminalId, data: bytes });
  }
  if (isRecord(exit)) {
    const { terminal_id: terminalId, exit_code: exitCode } = exit as {
      readonly terminal_id: string;
      readonly exit_code: number | null;
    };
    updates.push({ sessionUpdate: "terminal_update", terminalId, exitStatus: exitCode === null ? {} : { exitCode } });
  }
  return updates;
}

/** The edits of one file are one diff. */
function contentOfTwo(content: readonly ToolCallContent[], name: string, rawOutput: unknown): ContentOfTwo[] {
  const diff = content.find((item) => item.type === "diff");
  if (diff === undefined) return content as ContentOfTwo[];
  const { path, oldText = null, newText } = diff;
  // Those of `edit` have only a part of the file.
  const patch = name === "write" ? filePatch(path, oldText, newText) : patchFrom(patchIn(rawOutput), path);
  const file = { path, fileType: "text" };
  const change = oldText === null ? { operation: "add" as const, ...file } : { operation: "modify" as const, ...file };
  const shown = patch === undefined ? {} : { patch: { format: "git_patch", text: patch } as const };
  const others = content.filter((item) => item.type !== "diff") as ContentOfTwo[];
  return [{ type: "diff", changes: [change], ...shown }, ...others];
}

/** The diff that pi's `edit` has made. It is unchecked. */
function patchIn(rawOutput: unknown): string {
  const details = isRecord(rawOutput) ? rawOutput["details"] : undefined;
  const patch = isRecord(details) ? details["patch"] : undefined;
  return typeof patch === "string" ? patch : "";
}

/** The content has the patch already. */
function withoutPatch(rawOutput: unknown): unknown {
  const details = isRecord(rawOutput) ? rawOutput["details"] : undefined;
  if (!isRecord(details)) return rawOutput;
  const { patch: _patch, ...rest } = details;
  return { details: rest };
}
