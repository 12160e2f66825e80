import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { HeaderSplitter, type MessageListener, type MessageReader } from "./header-splitter.ts";

export const framingNames = ["jsonl", "content-length"] as const;
export type FramingName = (typeof framingNames)[number];

/** How messages are separated in a stream of bytes. */
export interface Framing {
  /** The bytes to write before and after one message. */
  around(message: Buffer): { readonly head: string; readonly tail: string };
  reader(listener: MessageListener, maxMessageBytes: number): MessageReader;
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
