import { isRecordObject } from "../pi/records.ts";
import { readEntries } from "../pi/session-file.ts";

/** A user's message as pi reports it, or as it stands in a session file. */
export interface UserMessage {
  readonly text: string;
  /** pi's own time of the message, in Unix milliseconds, where it gave one. */
  readonly sentAt: number | undefined;
}

/** One that stands in a session file. */
export interface UserEntry extends UserMessage {
  readonly entryId: string | undefined;
  /** Unix milliseconds. */
  readonly at: number;
}

/** A message that was just written is at the end of the file, with little behind it. */
const tailBytes = 256 * 1024;
/** JSON may take as many bytes for one character of a text. */
const bytesPerCharacter = 6;

/** The newest users' messages of a session file, the oldest of them first. Without a file there are none. */
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
 * The id of the entry that a message became, when pi has just reported the message. Undefined where it is not found: it
 * may be too far from the end of the file, behind large images.
 */
export async function entryIdOf(file: string, { text, sentAt }: UserMessage): Promise<string | undefined> {
  const entries = await userEntries(file, tailBytes + text.length * bytesPerCharacter).catch(() => []);
  return entries.findLast((entry) => entry.text === text && (sentAt === undefined || entry.sentAt === sentAt))?.entryId;
}

/** A user's message; undefined for any other. */
export function userMessage(message: unknown): UserMessage | undefined {
  if (!isRecordObject(message) || message["role"] !== "user") return undefined;
  const text = textOf(message["content"]);
  const { timestamp } = message;
  return text === undefined ? undefined : { text, sentAt: typeof timestamp === "number" ? timestamp : undefined };
}

/** The text of a message's content: its text blocks one after the other. */
export function textOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  return content
    .filter(isRecordObject)
    .filter(({ type }) => type === "text")
    .map(({ text }) => String(text))
    .join("");
}
