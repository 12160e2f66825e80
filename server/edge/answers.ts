import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { smallAnswerBytes, type Text, textBytes } from "../rpc/answer-text.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { Grant } from "../rpc/grant.ts";
import { Shares } from "../rpc/shares.ts";
import { grantOf } from "./admission.ts";
import type { EdgeLimits } from "./limits.ts";
import { type Refusal, refusal, written } from "./refusal.ts";
import { jsonHeaders, sendRefusal } from "./reply.ts";
import { whenGone } from "./when-gone.ts";

type Headers = Readonly<Record<string, string>>;

/** The answers over HTTP that have not been read: how many bytes of all sockets, and for how long. */
export class Answers {
  readonly #unread: Shares;
  readonly #readWithinMs: number;
  readonly #windowBytes: number;
  readonly #lane: Dispatcher["lane"];

  constructor(limits: EdgeLimits, lane: Dispatcher["lane"]) {
    this.#lane = lane;
    this.#windowBytes = limits.socketWindowBytes;
    this.#readWithinMs = limits.requestTimeoutMs;
    this.#unread = new Shares({
      what: "bytes of HTTP answers that are not read",
      max: limits.maxUnreadHttpBytes,
      maxPerToken: limits.maxUnreadHttpBytesPerToken,
      namedTokensPercent: limits.namedTokensPercent,
    });
  }

  /** Sends JSON; or that it is `overloaded`, where it is not small and too much is unread. */
  write(request: IncomingMessage, response: ServerResponse, text: Text, status = 200): void {
    this.#write(request, response, text, status, jsonHeaders);
  }

  /**
   * The same past fastify, which would read the type again to see whether the text is to be serialised, and collect the
   * head a second time.
   */
  send(request: FastifyRequest, reply: FastifyReply, text: Text, headers: Headers = jsonHeaders): void {
    reply.hijack();
    this.#write(request.raw, reply.raw, text, 200, headers);
  }

  /** Sends why there is no answer. */
  refuse(reply: FastifyReply, refused: Refusal): void {
    sendRefusal(reply, refused);
    this.#expectReading(reply.raw);
  }

  /** Sends that there is nothing to answer. */
  writeNothing(response: ServerResponse): void {
    response.writeHead(204).end();
    this.#expectReading(response);
  }

  #write(request: IncomingMessage, response: ServerResponse, text: Text, status: number, headers: Headers): void {
    // Nobody is there to read it.
    if (request.socket.destroyed) return;
    const length = textBytes(text);
    const isSmall = length <= smallAnswerBytes;
    const grant = grantOf(request);
    const full = isSmall ? undefined : this.#unread.refusal(grant, length);
    if (full === undefined) {
      response.writeHead(status, { ...headers, "content-length": String(length) });
      if (typeof text === "string") response.end(text);
      else this.#writePieces(response, text, grant);
    } else {
      const refused = written(refusal(full));
      response.writeHead(refused.status, refused.headers).end(refused.body);
    }
    if (!this.#expectReading(response) || isSmall || full !== undefined) return;
    this.#unread.add(grant, length);
    whenGone(request, response, () => this.#unread.add(grant, -length));
  }

  /** Writes a window at a time, in the turns of the token, as the peer reads. */
  #writePieces(response: ServerResponse, pieces: readonly Buffer[], grant: Grant | undefined): void {
    const lane = this.#lane(grant);
    let next = 0;
    const write = (): void => {
      if (response.destroyed) return;
      response.cork();
      for (let room = this.#windowBytes; room > 0 && next < pieces.length; next += 1) {
        const piece = pieces[next] as Buffer;
        response.write(piece);
        room -= piece.length;
      }
      response.uncork();
      if (next === pieces.length) response.end();
      else if (response.writableNeedDrain) response.once("drain", () => void lane.pass(write));
      else void lane.pass(write);
    };
    write();
  }

  /** Ends the socket of who does not read what was sent. Most is taken by the system at once. */
  #expectReading(response: ServerResponse): boolean {
    if (response.writableEnded && response.socket !== null && response.socket.writableLength === 0) return false;
    response.setTimeout(this.#readWithinMs);
    return true;
  }
}
