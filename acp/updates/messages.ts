import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk";
import type { By } from "../../protocol/client-identity.ts";
import { defined, isRecord } from "../../protocol/objects.ts";
import { wordOf } from "./raw-value.ts";
import { firstLine, oneLine } from "./text.ts";

/** A message of pi (docs/message-types.md of pi). Extensions make some of them, so nothing in it is checked. */
export type PiMessage = Readonly<Record<string, unknown>>;

/** The fields of `_meta` under our key, for a user's message. */
interface Meta {
  /** The client that sent it. */
  readonly by?: By | undefined;
  /** Of an extension's message. */
  readonly customType?: unknown;
}

export type TextKind = "text" | "thinking";

const maxTitleChars = 80;
const maxNoticeChars = 1_000;

/** The id of a message. It is the same in a replay, as far as pi's times differ. */
export function messageIdOf({ role, timestamp }: PiMessage): string {
  return `${wordOf(role)}-${wordOf(timestamp)}`;
}

export function answerChunk(kind: TextKind, text: string, messageId: string): SessionUpdate {
  const sessionUpdate = kind === "text" ? "agent_message_chunk" : "agent_thought_chunk";
  return { sessionUpdate, messageId, content: { type: "text", text } };
}

/** A user's message, or one of an extension: a chunk for its text, and one for each image. */
export function userChunks(message: PiMessage, meta: Meta = {}): SessionUpdate[] {
  const messageId = messageIdOf(message);
  const fields = defined({ ...meta });
  const ours = Object.keys(fields).length === 0 ? {} : { _meta: { "pi-rpcd": fields } };
  return contentBlocks(message["content"]).map((content) => ({
    sessionUpdate: "user_message_chunk" as const,
    messageId,
    content,
    ...ours,
  }));
}

/** An extension's message, as far as it wants it to be shown. */
export function customChunks(message: PiMessage, by?: By): SessionUpdate[] {
  if (message["display"] !== true) return [];
  const { customType } = message;
  return userChunks({ ...message, role: "custom" }, { by, ...(typeof customType === "string" ? { customType } : {}) });
}

/** The words of a failed answer. Undefined: it did not fail. */
export function failureChunk(message: PiMessage): SessionUpdate | undefined {
  if (message["stopReason"] !== "error") return undefined;
  const { errorMessage } = message;
  // pi 0.87.1 reports so the request of a run that was aborted.
  if (errorMessage === "This operation was aborted") return undefined;
  const words = typeof errorMessage === "string" && errorMessage !== "" ? errorMessage : "The model's answer failed.";
  return answerChunk("text", `Error: ${words}`, `${messageIdOf(message)}-error`);
}

/** A session's title, if it has no name: the first words of its first message. */
export function firstWords({ content }: PiMessage): string | undefined {
  const text = contentBlocks(content).find((block) => block.type === "text");
  return text?.type === "text" ? firstLine(text.text, maxTitleChars) || undefined : undefined;
}

/** The text of an answer's block. Undefined: it has none. */
export function textIn(block: unknown): { kind: TextKind; text: string } | undefined {
  if (!isRecord(block)) return undefined;
  const { type } = block;
  if (type !== "text" && type !== "thinking") return undefined;
  const text = block[type];
  return typeof text === "string" && text !== "" ? { kind: type, text } : undefined;
}

export interface Notice {
  readonly severity: "info" | "warning" | "error";
  readonly title: string;
  readonly description?: string | undefined;
}

/** A notice; for clients without notices, a line of the agent with the given id. */
export function noticeUpdate(notice: Notice, { notices, id }: { notices: boolean; id: string }): SessionUpdate {
  const { severity, description } = notice;
  const title = oneLine(notice.title, maxNoticeChars) || "Notice";
  if (!notices) {
    const words = description === undefined ? title : oneLine(`${title}: ${description}`, maxNoticeChars);
    return answerChunk("text", `${words}\n`, id);
  }
  return { sessionUpdate: "notice", severity, title, ...(description !== undefined && { description }) };
}

/** Blocks of text and images in their order. Adjacent texts are one, and other types are left out. */
function contentBlocks(content: unknown): ContentBlock[] {
  const given = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const blocks: ContentBlock[] = [];
  for (const block of Array.isArray(given) ? given : []) {
    if (!isRecord(block)) continue;
    const { type, text, data, mimeType } = block;
    const last = blocks.at(-1);
    if (type === "text" && typeof text === "string" && text !== "") {
      if (last?.type === "text") last.text += `\n\n${text}`;
      else blocks.push({ type, text });
    } else if (type === "image" && typeof data === "string" && typeof mimeType === "string") {
      blocks.push({ type, data, mimeType });
    }
  }
  return blocks;
}
