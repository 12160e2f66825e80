import type { ServerResponse } from "node:http";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { errorCatalogue } from "../../protocol/errors.ts";
import { HEALTH_PATH, RPC_PATH, type RpcResponse, WEBSOCKET_PATH } from "../../protocol/wire.ts";
import { type Dispatcher, defaultDispatcherLimits } from "../rpc/dispatcher.ts";
import { grantOf } from "./admission.ts";
import { answerText } from "./answer.ts";
import type { EdgeLimits } from "./limits.ts";
import { httpRefusal, pathOf, type Refusal, written } from "./refusal.ts";
import { addRest, restPaths } from "./rest.ts";

export interface HttpOptions {
  readonly dispatcher: Dispatcher;
  readonly limits: EdgeLimits;
  readonly log: Logger;
}

const methodsByPath: Readonly<Record<string, string>> = {
  [HEALTH_PATH]: "GET, HEAD",
  [RPC_PATH]: "POST",
  [WEBSOCKET_PATH]: "GET, HEAD",
};

const unreadable: readonly number[] = [errorCatalogue.parse_error.code, errorCatalogue.invalid_request.code];

/**
 * The HTTP routes, for requests that were admitted. They have no logic of their own: a body goes to the dispatcher as
 * it came. What can be said from the head alone is said before the body is read.
 */
export function createHttp({ dispatcher, limits, log }: HttpOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: limits.maxBodyBytes,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    onProtoPoisoning: "error",
    onConstructorPoisoning: "error",
    // A path that cannot be decoded comes before all hooks.
    frameworkErrors: (_error, _request, reply) => {
      void refuse(reply, httpRefusal(400, "The request's path cannot be read."));
    },
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.addHook("onRequest", async (request, reply) => {
    const refused = request.is404 ? refusePath(request) : refuseContent(request);
    return refused === undefined ? undefined : await refuse(reply, refused);
  });

  app.get(HEALTH_PATH, () => ({ ok: true }));
  app.get(WEBSOCKET_PATH, (_request, reply) =>
    refuse(reply, httpRefusal(426, "This path takes WebSocket upgrades.", { upgrade: "websocket" })),
  );
  app.post(RPC_PATH, async (request, reply) => {
    const conversation = dispatcher.converse(undefined, grantOf(request.raw));
    reply.raw.once("close", () => conversation.end());
    const answer = await conversation.receive((request.body as Buffer | undefined) ?? Buffer.alloc(0));
    // Who does not read the answer is not waited for.
    reply.raw.setTimeout(limits.requestTimeoutMs);
    if (answer === undefined) return await reply.code(204).send();
    return await reply.code(statusOf(answer)).type("application/json").send(answerText(answer, log));
  });

  addRest(app, {
    dispatcher,
    maxNestingDepth: defaultDispatcherLimits.maxNestingDepth,
    answerTimeoutMs: limits.requestTimeoutMs,
    log,
  });

  app.setErrorHandler((error: Error & { readonly statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) return refuse(reply, httpRefusal(status, error.message));
    log.error({ err: error }, "an HTTP request failed");
    return refuse(reply, httpRefusal(status, "The daemon failed; its log has the cause."));
  });
  return app;
}

/** Answers with a refusal outside of the routes. */
export function refuseRequest(response: ServerResponse, refused: Refusal): void {
  const { status, headers, body } = written(refused);
  response.writeHead(status, headers).end(body);
}

function refuse(reply: FastifyReply, refused: Refusal): FastifyReply {
  const { status, headers, body } = written(refused);
  return reply.code(status).headers(headers).send(body);
}

function refusePath(request: FastifyRequest): Refusal {
  const path = pathOf(request.raw.url);
  const allowed = methodsByPath[path] ?? restPaths.find((rest) => rest.path.test(path))?.verbs;
  return allowed === undefined
    ? httpRefusal(404, "There is nothing at this path.")
    : httpRefusal(405, `This path takes ${allowed}.`, { allow: allowed });
}

/** The content type makes a browser ask first, and nobody answers it. */
function refuseContent({ method, headers }: FastifyRequest): Refusal | undefined {
  if (method !== "POST") return undefined;
  const type = headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (type === "application/json" && encoding === "identity") return undefined;
  return httpRefusal(415, "The body must be application/json, without a content encoding.");
}

/** What was no JSON or no request at all is 400. The error of a single call is an answer like others. */
function statusOf(answer: RpcResponse | readonly RpcResponse[]): number {
  return "error" in answer && answer.id === null && unreadable.includes(answer.error.code) ? 400 : 200;
}
