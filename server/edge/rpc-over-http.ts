import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "pino";
import { errorCatalogue } from "../../protocol/errors.ts";
import { RPC_PATH, type RpcResponse } from "../../protocol/wire.ts";
import { answerText } from "../rpc/answer-text.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import { grantOf, isLocal } from "./admission.ts";
import type { Answers } from "./answers.ts";
import type { EdgeLimits } from "./limits.ts";
import { whenGone } from "./when-gone.ts";

export interface RpcOverHttpOptions {
  readonly dispatcher: Dispatcher;
  readonly answers: Answers;
  readonly limits: EdgeLimits;
  readonly log: Logger;
}

const unreadable: readonly number[] = [errorCatalogue.parse_error.code, errorCatalogue.invalid_request.code];

/** Answers JSON-RPC texts in the bodies of admitted requests. */
export class RpcOverHttp {
  readonly #options: RpcOverHttpOptions;

  constructor(options: RpcOverHttpOptions) {
    this.#options = options;
  }

  /**
   * Serves a plain JSON-RPC request: a JSON body with its length, no other encoding, no special `Accept`. Returns false for
   * others: they go to fastify's route, which costs three times as much and refuses wrong types.
   */
  serve(request: IncomingMessage, response: ServerResponse): boolean {
    if (request.url !== RPC_PATH || request.method !== "POST" || !this.#isPlain(request)) return false;
    let body: Buffer | undefined;
    request.on("data", (chunk: Buffer) => {
      body = body === undefined ? chunk : Buffer.concat([body, chunk]);
    });
    // A request that breaks off has no end, and needs no answer.
    request.on("end", () => void this.answer(request, response, body ?? Buffer.alloc(0)));
    return true;
  }

  /** Answers a body. Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse, body: Buffer): Promise<void> {
    const { dispatcher, answers, log } = this.#options;
    const conversation = dispatcher.converse(undefined, grantOf(request), isLocal(request));
    whenGone(request, response, () => conversation.end());
    await conversation.receive(body, (answer) => {
      if (answer === undefined) answers.writeNothing(response);
      else answers.write(request, response, answerText(answer, log), statusOf(answer));
    });
  }

  #isPlain({ headers }: IncomingMessage): boolean {
    const { accept } = headers;
    return (
      headers["content-type"] === "application/json" &&
      headers["content-encoding"] === undefined &&
      headers["transfer-encoding"] === undefined &&
      (accept === undefined || accept === "*/*" || accept === "application/json") &&
      Number(headers["content-length"]) <= Math.min(this.#options.limits.maxBodyBytes, maxPlainBytes)
    );
  }
}

/** Longer bodies arrive in many chunks, which fastify concatenates once at the end. */
const maxPlainBytes = 64 * 1024;

/** Returns 400 for a text that is not JSON or not a request. The error of a call is a normal answer: 200. */
function statusOf(answer: RpcResponse | readonly RpcResponse[]): number {
  return "error" in answer && answer.id === null && unreadable.includes(answer.error.code) ? 400 : 200;
}
