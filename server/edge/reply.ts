import type { FastifyReply } from "fastify";
import { type Refusal, written } from "./refusal.ts";

export const json = "application/json; charset=utf-8";

/** A reply must not be awaited: it would be for its end, by half a dozen listeners of its own. */
export function sendRefusal(reply: FastifyReply, refused: Refusal): void {
  const { status, headers, body } = written(refused);
  void reply.code(status).headers(headers).send(body);
}
