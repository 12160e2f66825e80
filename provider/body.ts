import type { IncomingMessage } from "node:http";

/** A request's body, or why there is none. `bytes` is what came. */
export type Body =
  | { readonly kind: "whole"; readonly text: string; readonly bytes: number }
  | { readonly kind: "tooLarge"; readonly bytes: number }
  | { readonly kind: "cutOff"; readonly bytes: number };

/** Reads a body. Beyond the limit the rest is read and dropped, so that the client can read the refusal. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Body> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > maxBytes) chunks.length = 0;
      else chunks.push(chunk);
    }
  } catch {
    return { kind: "cutOff", bytes };
  }
  return bytes > maxBytes
    ? { kind: "tooLarge", bytes }
    : { kind: "whole", text: Buffer.concat(chunks).toString("utf8"), bytes };
}
