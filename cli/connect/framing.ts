import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { HeaderSplitter } from "./header-splitter.ts";

export const framingNames = ["jsonl", "content-length"] as const;
export type FramingName = (typeof framingNames)[number];

/** Where the messages of a byte stream go. */
export interface MessageListener {
  /** One message's bytes, perhaps a view of the chunk: copy them to keep them. */
  onMessage(message: Buffer): void;
  /** A message over the limit was skipped: how long it was. */
  onOversize(bytes: number): void;
}

/** How messages lie in a stream of bytes. */
export interface Framing {
  /** What is written around one message; its bytes go in between as they are. */
  around(message: Buffer): { readonly head: string; readonly tail: string };
  reader(listener: MessageListener, maxMessageBytes: number): MessageReader;
}

export interface MessageReader {
  /** Throws a {@link FramingError} where the stream cannot be understood any more. */
  push(chunk: Buffer): void;
  /** Takes the end of the stream: a last line that lacks only its line end is a message. False inside a message. */
  end(): boolean;
}

/** The stream is not what its framing says, and nothing tells where the next message begins. */
export class FramingError extends Error {
  override readonly name = "FramingError";
}

/** A message a line, and the framing of the Language Server Protocol (`Content-Length` before each message). */
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
