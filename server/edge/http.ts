import type { ServerResponse } from "node:http";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { errorCatalogue } from "../../protocol/errors.ts";
import { fixedRoutes } from "../../protocol/fixed-routes.ts";
import type { Result } from "../../protocol/methods.ts";
import { openApiDocument } from "../../protocol/openapi.ts";
import { HEALTH_PATH, METRICS_PATH, RPC_PATH, type RpcResponse, WEBSOCKET_PATH } from "../../protocol/wire.ts";
import { answerText } from "../rpc/answer-text.ts";
import { type Dispatcher, defaultDispatcherLimits } from "../rpc/dispatcher.ts";
import { accepted } from "./accept.ts";
import { grantOf } from "./admission.ts";
import { Answers } from "./answers.ts";
import type { EventStreams } from "./event-streams.ts";
import type { EdgeLimits } from "./limits.ts";
import { metricsContentType, metricsText } from "./metrics-text.ts";
import { referenceHeaders, referencePage } from "./reference-page.ts";
import { httpRefusal, pathOf, type Refusal, refusal, written } from "./refusal.ts";
import { sendRefusal } from "./reply.ts";
import { addRest, errorOf, restPaths } from "./rest.ts";

export interface HttpOptions {
  readonly dispatcher: Dispatcher;
  readonly streams: EventStreams;
  /** Of the package, for documents. */
  readonly version: string;
  readonly limits: EdgeLimits;
  readonly log: Logger;
}

const paths = restPaths();
const verbsByPath = new Map(
  fixedRoutes.map(({ verb, path }) => [path as string, verb === "GET" ? "GET, HEAD" : verb] as const),
);

const unreadable: readonly number[] = [errorCatalogue.parse_error.code, errorCatalogue.invalid_request.code];

/**
 * The HTTP routes, for requests that were admitted. They have no logic of their own: a body goes to the dispatcher as
 * it came. What can be said from the head alone is said before the body is read.
 */
export function createHttp({ dispatcher, streams, version, limits, log }: HttpOptions): FastifyInstance {
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
      sendRefusal(reply, httpRefusal(400, "The request's path cannot be read."));
    },
  });
  const answers = new Answers(limits);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.addHook("onRequest", (request, reply, done) => {
    const refused = request.is404 ? refusePath(request) : refuseContent(request);
    if (refused === undefined) done();
    else sendRefusal(reply, refused);
  });

  app.get(HEALTH_PATH, () => ({ ok: true }));
  app.get(WEBSOCKET_PATH, (_request, reply) =>
    sendRefusal(reply, httpRefusal(426, "This path takes WebSocket upgrades.", { upgrade: "websocket" })),
  );
  // Made when they are first asked for.
  const made = new Map<string, string>();
  const once = (name: string, make: () => string): string => {
    const text = made.get(name) ?? make();
    made.set(name, text);
    return text;
  };
  app.get("/openapi.json", (_request, reply) => {
    const text = once("openapi", () => JSON.stringify(openApiDocument(version)));
    answers.sendAs(reply, "application/json", text);
  });
  app.get("/docs", (_request, reply) => {
    const text = once("docs", () => referencePage(version));
    answers.sendAs(reply.headers(referenceHeaders), "text/html; charset=utf-8", text);
  });
  app.post(RPC_PATH, async (request, reply) => {
    const conversation = dispatcher.converse(undefined, grantOf(request.raw));
    reply.raw.once("close", () => conversation.end());
    const answer = await conversation.receive((request.body as Buffer | undefined) ?? Buffer.alloc(0));
    if (answer === undefined) answers.sendNothing(reply);
    else answers.send(reply, answerText(answer, log), statusOf(answer));
  });

  app.get(METRICS_PATH, async (request, reply) => {
    const answer = await dispatcher.converse(undefined, grantOf(request.raw)).call("daemon/metrics", {});
    if ("error" in answer) answers.refuse(reply, refusal(errorOf(answer.error)));
    else {
      const { metrics } = answer.result as Result<"daemon/metrics">;
      answers.sendAs(reply, metricsContentType, metricsText(metrics));
    }
  });

  addRest(app, {
    dispatcher,
    streams,
    jsonLimits: defaultDispatcherLimits,
    answers,
    log,
  });

  app.setErrorHandler((error: Error & { readonly statusCode?: number }, _request, reply) => {
    const status = error.statusCode ?? 500;
    if (status < 500) {
      sendRefusal(reply, httpRefusal(status, error.message));
      return;
    }
    log.error({ err: error }, "an HTTP request failed");
    sendRefusal(reply, httpRefusal(status, "The daemon failed; its log has the cause."));
  });
  return app;
}

/** Answers with a refusal outside of the routes. */
export function refuseRequest(response: ServerResponse, refused: Refusal): void {
  const { status, headers, body } = written(refused);
  response.writeHead(status, headers).end(body);
}

function refusePath(request: FastifyRequest): Refusal {
  const path = pathOf(request.raw.url);
  const allowed = verbsByPath.get(path) ?? paths.find((rest) => rest.path.test(path))?.verbs;
  return allowed === undefined
    ? httpRefusal(404, "There is nothing at this path.")
    : httpRefusal(405, `This path takes ${allowed}.`, { allow: allowed });
}

/** The content type makes a browser ask first, and nobody answers it. A body that is not there needs none. */
function refuseContent({ method, headers, url }: FastifyRequest): Refusal | undefined {
  if (method === "GET" || method === "HEAD") return undefined;
  const isEmpty = headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) === 0;
  const isRpc = pathOf(url) === RPC_PATH;
  if (isRpc && accepted(headers.accept, ["application/json"]) === undefined)
    return httpRefusal(406, "This path answers with application/json.");
  if (isEmpty && headers["content-type"] === undefined && !isRpc) return undefined;
  const type = headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase();
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (type === "application/json" && encoding === "identity") return undefined;
  return httpRefusal(415, "The body must be application/json, without a content encoding.");
}

/** What was no JSON or no request at all is 400. The error of a single call is an answer like others. */
function statusOf(answer: RpcResponse | readonly RpcResponse[]): number {
  return "error" in answer && answer.id === null && unreadable.includes(answer.error.code) ? 400 : 200;
}
