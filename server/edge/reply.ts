import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { type Refusal, written } from "./refusal.ts";

// A reply must not be awaited: it would be for its end, by half a dozen listeners of its own.

const json = "application/json; charset=utf-8";

/** Past fastify, which would read the type again to see whether the text is to be serialised, and collect the head a second time. */
export function sendJson(reply: FastifyReply, status: number, text: string): void {
  reply.hijack();
  writeJson(reply.raw, status, text);
}

export function writeJson(response: ServerResponse, status: number, text: string): void {
  const length = String(Buffer.byteLength(text));
  response.writeHead(status, { "content-type": json, "content-length": length }).end(text);
}

export function sendRefusal(reply: FastifyReply, refused: Refusal): void {
  const { status, headers, body } = written(refused);
  void reply.code(status).headers(headers).send(body);
}

/** Ends the socket of who does not read an answer that was sent. Most are taken by the system at once. */
export function expectReading(response: ServerResponse, withinMs: number): void {
  if (response.socket === null || response.socket.writableLength > 0) response.setTimeout(withinMs);
}
