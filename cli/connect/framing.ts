import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { HeaderSplitter } from "./header-splitter.ts";

export const framingNames = ["jsonl", "content-length"] as const;
export type FramingName = (typeof framingNames)[number];

/** The listener for the messages of a byte stream. */
export interface MessageListener {
  /** The bytes of one message, perhaps a view of the chunk: copy them to keep them. */
  onMessage(message: Buffer): void;
  /** A message over the limit was skipped; `bytes` is its length. */
  onOversize(bytes: number): void;
}

/** How messages are separated in a stream of bytes. */
export interface Framing {
  /** The bytes to write before and after one message. */
  around(message: Buffer): { readonly head: string; readonly tail: string };
  reader(listener: MessageListener, maxMessageBytes: number): MessageReader;
}

export interface MessageReader {
  /** Throws a {@link FramingError} if the rest of the stream cannot be parsed. */
  push(chunk: Buffer): void;
  /** Handles the end of the stream: a last line without a line end is a message. Returns false inside a message. */
  end(): boolean;
}

/** The stream violates its framing, so the start of the next message is unknown. */
export class FramingError extends Error {
  override readonly name = "FramingError";
}

/** One message per line, and the framing of the Language Server Protocol (`Content-Length` before each message). */
export const framings: Readonly<Record<FramingName, Framing>> = {
  jsonl: {
    around: () => ({ head: "", tail: "\n" }),
    reader: ({ onMessage, onOversize }, maxRecordBytes) => {
      let isEnd = false;
      let isCutOff = false;
      const splitter = new JsonlSplitter({
        maxRecordBytes,
        onRecord: (record) => {
          isCutOff = isEnd && !isJson(record);
          if (!isCutOff) onMessage(record);
        },
        onOversize: (_head, bytes) => onOversize(bytes),
      });
      return {
        push: (chunk) => splitter.push(chunk),
        end: () => {
          isEnd = true;
          splitter.push(Buffer.from("\n"));
          return !isCutOff;
        },
      };
    },
  },
  "content-length": {
    around: (message) => ({ head: `Content-Length: ${message.length}\r\n\r\n`, tail: "" }),
    reader: (listener, maxMessageBytes) =>
      new HeaderSplitter(listener, maxMessageBytes, (detail) => new FramingError(detail)),
  },
};

function isJson(record: Buffer): boolean {
  try {
    JSON.parse(record.toString());
    return true;
  } catch {
    return false;
  }
}
