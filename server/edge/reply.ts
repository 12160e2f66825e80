import type { FastifyReply } from "fastify";
import { type Refusal, written } from "./refusal.ts";

/** The headers of every answer in JSON: no cache keeps it, and no browser takes it for another type. */
export const jsonHeaders = {
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
} as const;

/** A reply must not be awaited: it would be for its end, by half a dozen listeners of its own. */
export function sendRefusal(reply: FastifyReply, refused: Refusal): void {
  const { status, headers, body } = written(refused);
  void reply.code(status).headers(headers).send(body);
}
