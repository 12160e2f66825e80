import type { FastifyReply } from "fastify";
import { smallAnswerBytes } from "../rpc/answer-text.ts";
import { grantOf } from "./admission.ts";
import type { EdgeLimits } from "./limits.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { sendJson, sendRefusal } from "./reply.ts";
import { Shares } from "./shares.ts";

/** The answers over HTTP that have not been read: how many bytes of all sockets, and for how long. */
export class Answers {
  readonly #unread: Shares;
  readonly #readWithinMs: number;

  constructor(limits: EdgeLimits) {
    this.#readWithinMs = limits.requestTimeoutMs;
    this.#unread = new Shares({
      what: "bytes of HTTP answers that are not read",
      max: limits.maxUnreadHttpBytes,
      maxPerToken: limits.maxUnreadHttpBytesPerToken,
      namedTokensPercent: limits.namedTokensPercent,
    });
  }

  /** Sends a text; or that it is `overloaded`, where it is not small and too much is unread. */
  send(reply: FastifyReply, text: string, status = 200): void {
    this.#send(reply, text, () => sendJson(reply, status, text));
  }

  /** The same where its type is set already. */
  sendAs(reply: FastifyReply, type: string, text: string): void {
    this.#send(reply, text, () => void reply.type(type).send(text));
  }

  /** Sends why there is no answer. */
  refuse(reply: FastifyReply, refused: Refusal): void {
    sendRefusal(reply, refused);
    this.#expectReading(reply);
  }

  /** Sends that there is nothing to answer. */
  sendNothing(reply: FastifyReply): void {
    void reply.code(204).send();
    this.#expectReading(reply);
  }

  /** Ends the socket of who does not read what was sent. Most is taken by the system at once. */
  #expectReading({ raw }: FastifyReply): boolean {
    if (raw.socket !== null && raw.socket.writableLength === 0) return false;
    raw.setTimeout(this.#readWithinMs);
    return true;
  }

  #send(reply: FastifyReply, { length }: string, send: () => void): void {
    const isSmall = length <= smallAnswerBytes;
    const grant = grantOf(reply.request.raw);
    const full = isSmall ? undefined : this.#unread.refusal(grant, length);
    if (full === undefined) send();
    else sendRefusal(reply, refusal(full));
    if (!this.#expectReading(reply) || isSmall || full !== undefined) return;
    this.#unread.add(grant, length);
    reply.raw.once("close", () => this.#unread.add(grant, -length));
  }
}
