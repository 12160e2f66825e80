import { isRecord } from "../../protocol/objects.ts";
import { readEntries } from "../pi/session-file.ts";

/** A user message, as pi reports it or as its session file stores it. */
export interface UserMessage {
  readonly text: string;
  /** pi's own time of the message in Unix milliseconds, if present. */
  readonly sentAt: number | undefined;
}

/** A user message in a session file. */
export interface UserEntry extends UserMessage {
  readonly entryId: string | undefined;
  /** Unix milliseconds. */
  readonly at: number;
}

/** A message that was just written is near the end of the file. */
const tailBytes = 256 * 1024;
/** JSON may need this many bytes for one character of a text. */
const bytesPerCharacter = 6;

/** The newest user messages of a session file, oldest first. Empty if there is no file. */
export async function userEntries(file: string, maxBytes?: number): Promise<UserEntry[]> {
  const entries = await readEntries(file, maxBytes).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  return entries.flatMap((entry) => {
    const message = userMessage(entry["message"]);
    const entryId = typeof entry["id"] === "string" ? entry["id"] : undefined;
    return message === undefined ? [] : [{ ...message, entryId, at: Date.parse(String(entry["timestamp"])) }];
  });
}

/**
 * The id of the entry for a message that pi has just reported. Undefined if it is not found, for example because
 * large images follow it in the file.
 */
export async function entryIdOf(file: string, { text, sentAt }: UserMessage): Promise<string | undefined> {
  const entries = await userEntries(file, tailBytes + text.length * bytesPerCharacter).catch(() => []);
  return entries.findLast((entry) => entry.text === text && (sentAt === undefined || entry.sentAt === sentAt))?.entryId;
}

/** Returns the user message; undefined for other messages. */
export function userMessage(message: unknown): UserMessage | undefined {
  if (!isRecord(message) || message["role"] !== "user") return undefined;
  const text = textOf(message["content"]);
  const { timestamp } = message;
  return text === undefined ? undefined : { text, sentAt: typeof timestamp === "number" ? timestamp : undefined };
}

/** The text of a message's content: its text blocks, joined. */
export function textOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  return content
    .filter(isRecord)
    .filter(({ type }) => type === "text")
    .map(({ text }) => String(text))
    .join("");
}
