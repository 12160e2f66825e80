import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { smallAnswerBytes, type Text, textBytes, wholeText } from "../rpc/answer-text.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { Grant } from "../rpc/grant.ts";
import type { Quota } from "../rpc/quota.ts";
import { grantOf } from "./admission.ts";
import type { EdgeLimits } from "./limits.ts";
import { type Refusal, refusal, written } from "./refusal.ts";
import { whenGone } from "./when-gone.ts";

type Headers = Readonly<Record<string, string>>;

/** The headers of every answer in JSON: no cache stores it, and no browser guesses another type. */
export const jsonHeaders = {
  "content-type": "application/json; charset=utf-8",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
} as const;

export interface AnswersOptions {
  readonly limits: Pick<EdgeLimits, "requestTimeoutMs" | "socketWindowBytes">;
  /** The bytes of answers that their peers have not read. */
  readonly unread: Quota;
  readonly lane: Dispatcher["lane"];
}

/** Writes the answers over HTTP, and bounds how many bytes stay unread and for how long. */
export class Answers {
  readonly #options: AnswersOptions;

  constructor(options: AnswersOptions) {
    this.#options = options;
  }

  /** Sends JSON; or `overloaded`, if it is large and too many bytes are unread. */
  write(request: IncomingMessage, response: ServerResponse, text: Text, status = 200): void {
    this.#write(request, response, text, status, jsonHeaders);
  }

  /**
   * Sends a text on the reply's raw response: `reply.send` would look again whether the text must be serialised, and
   * would copy the headers a second time.
   */
  send(request: FastifyRequest, reply: FastifyReply, text: Text, headers: Headers = jsonHeaders): void {
    reply.hijack();
    this.#write(request.raw, reply.raw, text, 200, headers);
  }

  /** Sends a refusal. The reply must not be awaited: that would add six listeners to the response. */
  refuse(reply: FastifyReply, refused: Refusal): void {
    const { status, headers, body } = written(refused);
    void reply.code(status).headers(headers).send(body);
    this.#limitReading(reply.raw);
  }

  /** Sends 204. */
  writeNothing(response: ServerResponse): void {
    response.writeHead(204).end();
    this.#limitReading(response);
  }

  #write(request: IncomingMessage, response: ServerResponse, text: Text, status: number, headers: Headers): void {
    if (request.socket.destroyed) return;
    const { unread } = this.#options;
    const length = textBytes(text);
    const isSmall = length <= smallAnswerBytes;
    const grant = grantOf(request);
    const full = isSmall ? undefined : unread.refusal(grant, length);
    if (full === undefined) {
      response.writeHead(status, { ...headers, "content-length": String(length) });
      // As one text, a small answer leaves with its head in one write.
      if (isSmall) response.end(wholeText(text));
      else if (typeof text === "string") response.end(text);
      else this.#writePieces(response, text, grant);
    } else {
      const refused = written(refusal(full));
      response.writeHead(refused.status, refused.headers).end(refused.body);
    }
    if (!this.#limitReading(response) || isSmall || full !== undefined) return;
    unread.add(grant, length);
    whenGone(request, response, () => unread.add(grant, -length));
  }

  /** Writes one window at a time, in the turns of the token, as the peer reads. */
  #writePieces(response: ServerResponse, pieces: readonly Buffer[], grant: Grant | undefined): void {
    const lane = this.#options.lane(grant);
    let next = 0;
    const write = (): void => {
      if (response.destroyed) return;
      response.cork();
      for (let room = this.#options.limits.socketWindowBytes; room > 0 && next < pieces.length; next += 1) {
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

  /** Closes the socket of a peer that does not read its answer. Returns false if the system has taken all of it already. */
  #limitReading(response: ServerResponse): boolean {
    if (response.writableEnded && response.socket !== null && response.socket.writableLength === 0) return false;
    response.setTimeout(this.#options.limits.requestTimeoutMs);
    return true;
  }
}
