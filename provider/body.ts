import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** A request's body, or why it is missing. `bytes` is the received length. */
export type Body =
  | { readonly kind: "whole"; readonly text: string; readonly bytes: number; readonly sha256: string }
  | { readonly kind: "tooLarge"; readonly bytes: number }
  | { readonly kind: "cutOff"; readonly bytes: number };

/** Reads a body. The part over the limit is read and dropped, so that the client can read the refusal. */
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
  if (bytes > maxBytes) return { kind: "tooLarge", bytes };
  const whole = Buffer.concat(chunks);
  return {
    kind: "whole",
    text: whole.toString("utf8"),
    bytes,
    sha256: createHash("sha256").update(whole).digest("hex"),
  };
}
