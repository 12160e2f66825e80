import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { WireError } from "../../protocol/errors.ts";
import { HEALTH_PATH, RPC_PATH, WEBSOCKET_PATH } from "../../protocol/wire.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { Admission, Transport } from "./admission.ts";
import { answerText } from "./answer.ts";
import type { EdgeLimits } from "./limits.ts";
import { httpProblem, nameOfStatus, problem, type Refusal } from "./refusal.ts";

export interface HttpOptions {
  readonly dispatcher: Dispatcher;
  readonly admission: Admission;
  readonly transportOf: (request: FastifyRequest) => Transport;
  readonly limits: EdgeLimits;
  readonly log: Logger;
}

const methodsByPath: Readonly<Record<string, string>> = {
  [HEALTH_PATH]: "GET",
  [RPC_PATH]: "POST",
  [WEBSOCKET_PATH]: "GET",
};

/** The HTTP routes. They have no logic of their own: a body goes to the dispatcher as it came. */
export function createHttp({ dispatcher, admission, transportOf, limits, log }: HttpOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: limits.maxBodyBytes,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    onProtoPoisoning: "error",
    onConstructorPoisoning: "error",
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

  app.addHook("onRequest", async (request, reply) => {
    const transport = transportOf(request);
    const open = request.url === HEALTH_PATH;
    const refused = open ? admission.refuseForeign(request.raw, transport) : admission.refuse(request.raw, transport);
    if (refused === undefined) return;
    if (admission.overrun) request.raw.socket.destroy();
    return await refuse(reply, problem(refused));
  });

  app.get(HEALTH_PATH, () => ({ ok: true }));
  app.get(WEBSOCKET_PATH, (_request, reply) =>
    refuse(reply, httpProblem(426, "invalid_request", "This path takes WebSocket upgrades.", { upgrade: "websocket" })),
  );
  app.post(RPC_PATH, async (request, reply) => {
    const conversation = dispatcher.converse(undefined);
    reply.raw.once("close", () => conversation.end());
    const answer = await conversation.receive((request.body as Buffer | undefined) ?? Buffer.alloc(0));
    if (answer === undefined) return await reply.code(204).send();
    return await reply.code(isUnreadable(answer) ? 400 : 200).type("application/json").send(answerText(answer, log));
  });

  app.setNotFoundHandler((request, reply) => {
    const allowed = methodsByPath[request.url.split("?")[0] ?? ""];
    return allowed === undefined
      ? refuse(reply, httpProblem(404, "method_not_found", "There is nothing at this path."))
      : refuse(reply, httpProblem(405, "method_not_found", `This path takes ${allowed}.`, { allow: allowed }));
  });
  app.setErrorHandler((error: WireError & { statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) log.error({ err: error }, "an HTTP request failed");
    return refuse(reply, httpProblem(status, nameOfStatus(status), status >= 500 ? "The daemon failed; its log has the cause." : error.message));
  });
  return app;
}

/** What was no JSON or no request at all. The error of a single call is an answer like others, with status 200. */
function isUnreadable(answer: unknown): boolean {
  return typeof answer === "object" && answer !== null && "error" in answer && "id" in answer && answer.id === null;
}

function refuse(reply: FastifyReply, { status, contentType, body, headers }: Refusal): FastifyReply {
  return reply.code(status).headers(headers).type(contentType).send(body);
}
