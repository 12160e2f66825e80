import { addAbortSignal, type Readable } from "node:stream";
import { CommandError, UsageError } from "./errors.ts";

export interface TextSource {
  readonly command: string;
  /** The words of the command line. */
  readonly words: readonly string[];
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly signal: AbortSignal;
}

/**
 * Returns the text of a message: the words of the command line, or stdin for `-` or no words. A final line break is
 * removed.
 */
export async function messageText({ command, words, stdin, signal }: TextSource): Promise<string> {
  const [first] = words;
  const fromStdin = first === undefined || (first === "-" && words.length === 1);
  if (first === undefined && stdin.isTTY === true) {
    throw new UsageError("TEXT is missing: give it after the session, or on stdin.", command);
  }
  const text = fromStdin ? await readAll(stdin, signal) : words.join(" ");
  if (text.trim() === "") throw new UsageError("The text is empty.", command);
  return text;
}

/** Reads a whole stream as text, without a final line break. Throws `too_large`. */
export async function readAll(
  stdin: Readable,
  signal: AbortSignal,
  maxBytes = Number.POSITIVE_INFINITY,
  name = "stdin",
): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of addAbortSignal(signal, stdin)) {
      bytes += (chunk as Uint8Array).byteLength;
      if (bytes > maxBytes) {
        const advice = name === "stdin" ? ": use a file instead" : "";
        throw new CommandError("too_large", `${name} has more than ${maxBytes} bytes${advice}.`);
      }
      chunks.push(Buffer.from(chunk as Uint8Array));
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/\r?\n$/, "");
}
