import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { fixedRoutes } from "../../protocol/fixed-routes.ts";
import type { MethodTable } from "../../protocol/method-row.ts";
import { methods, type Result } from "../../protocol/methods.ts";
import { openApiDocument } from "../../protocol/openapi.ts";
import { ACP_PATH, HEALTH_PATH, METRICS_PATH, RPC_PATH, WEBSOCKET_PATH } from "../../protocol/wire.ts";
import { type Dispatcher, defaultDispatcherLimits } from "../rpc/dispatcher.ts";
import { accepted } from "./accept.ts";
import { grantOf } from "./admission.ts";
import { type Answers, jsonHeaders } from "./answers.ts";
import type { EventStreams } from "./event-streams.ts";
import type { EdgeLimits } from "./limits.ts";
import { metricsContentType, metricsText } from "./metrics-text.ts";
import { referenceHeaders, referencePage } from "./reference-page.ts";
import { httpRefusal, pathOf, type Refusal, refusal, refuseRequest, tooLarge } from "./refusal.ts";
import { addRest, answerCall, restPaths } from "./rest.ts";
import type { RpcOverHttp } from "./rpc-over-http.ts";

export interface HttpOptions {
  readonly dispatcher: Dispatcher;
  readonly streams: EventStreams;
  readonly answers: Answers;
  readonly rpc: RpcOverHttp;
  /** The version of the package, for the documents. */
  readonly version: string;
  readonly limits: EdgeLimits;
  readonly log: Logger;
}

/**
 * Creates the HTTP routes for admitted requests. A route has no logic of its own: its row's schema is checked by the
 * dispatcher, as for a WebSocket. Checks that need only the head run before the body is read.
 */
export function createHttp(options: HttpOptions, table: MethodTable = methods): FastifyInstance {
  const { dispatcher, streams, answers, rpc, version, limits, log } = options;
  const refusePath = pathRefusals(table);
  const app = Fastify({
    logger: false,
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    bodyLimit: limits.maxBodyBytes,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    onProtoPoisoning: "error",
    onConstructorPoisoning: "error",
    // A path that cannot be decoded reaches no hook.
    frameworkErrors: (_error, _request, reply) => {
      answers.refuse(reply, httpRefusal(400, "The request's path cannot be read."));
    },
  });
  app.removeAllContentTypeParsers();
  // fastify caches the parser of an exact type; the other spellings of the type are looked up each time.
  for (const type of ["application/json", "*"]) {
    app.addContentTypeParser(type, { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  }
  app.addHook("onRequest", (request, reply, done) => {
    const refused = request.is404 ? refusePath(request) : (refuseContent(request) ?? refuseQuery(request));
    if (refused === undefined) done();
    else answers.refuse(reply, refused);
  });
  // The handlers run in the turns of the token, as the messages of its WebSockets do.
  app.addHook("preHandler", (request, _reply, done) => {
    const lane = dispatcher.lane(grantOf(request.raw));
    if (lane.isBusy) void lane.pass(() => done());
    else lane.count(() => done());
  });
  app.setErrorHandler((error: Error & { readonly statusCode?: number }, _request, reply) => {
    const { statusCode = 500 } = error;
    if (error instanceof WireError) {
      answers.refuse(reply, refusal(error));
    } else if (statusCode === 413) {
      reply.hijack();
      refuseRequest(reply.raw, tooLarge(limits.maxBodyBytes), limits);
    } else if (statusCode < 500) {
      answers.refuse(reply, httpRefusal(statusCode, error.message));
    } else {
      log.error({ err: error }, "an HTTP request failed");
      answers.refuse(reply, httpRefusal(statusCode, "The daemon failed; its log has the cause."));
    }
  });

  app.get(HEALTH_PATH, (_request, reply) => {
    void reply.headers(jsonHeaders).send('{"ok":true}');
  });
  const refuseWithoutUpgrade = (_request: FastifyRequest, reply: FastifyReply): void =>
    answers.refuse(reply, httpRefusal(426, "This path takes WebSocket upgrades.", { upgrade: "websocket" }));
  app.get(WEBSOCKET_PATH, refuseWithoutUpgrade);
  app.get(ACP_PATH, refuseWithoutUpgrade);
  // Clients of ACP over HTTP begin with a POST.
  app.post(ACP_PATH, { onRequest: refuseWithoutUpgrade }, refuseWithoutUpgrade);
  const openApi = once(() => JSON.stringify(openApiDocument(version)));
  app.get("/openapi.json", (request, reply) => answers.send(request, reply, openApi()));
  const docs = once(() => referencePage(version));
  const docsHeaders = { ...referenceHeaders, "content-type": "text/html; charset=utf-8" };
  app.get("/docs", (request, reply) => answers.send(request, reply, docs(), docsHeaders));
  app.get(METRICS_PATH, (request, reply) =>
    answerCall({ request, reply, dispatcher, method: "daemon/metrics", params: {} }, (result) => {
      const { metrics } = result as Result<"daemon/metrics">;
      answers.send(request, reply, metricsText(metrics), { "content-type": metricsContentType });
    }),
  );
  app.post(RPC_PATH, (request, reply) => {
    reply.hijack();
    void rpc.answer(request.raw, reply.raw, (request.body as Buffer | undefined) ?? Buffer.alloc(0));
  });
  addRest(app, { dispatcher, streams, jsonLimits: defaultDispatcherLimits, answers, log }, table);
  return app;
}

/** Routes have no schemas of fastify's: its compilers are not loaded. */
function noSchemas(): never {
  throw new Error("A route of the daemon has no schema for fastify.");
}

/** Returns a text that is made at the first call, as bytes, which are written in the turns of a token. */
function once(make: () => string): () => readonly Buffer[] {
  let made: readonly Buffer[] | undefined;
  return () => {
    made ??= [Buffer.from(make())];
    return made;
  };
}

/** Returns a function that refuses a request without a route: 405 if the path has other verbs, else 404. */
function pathRefusals(table: MethodTable): (request: FastifyRequest) => Refusal {
  const paths = restPaths(table);
  const fixed = new Map(
    fixedRoutes.map(({ verb, path }) => [path as string, verb === "GET" ? "GET, HEAD" : verb] as const),
  );
  return ({ raw: { url } }) => {
    const path = pathOf(url);
    const allowed = fixed.get(path) ?? paths.find((rest) => rest.path.test(path))?.verbs;
    return allowed === undefined
      ? httpRefusal(404, "There is nothing at this path.")
      : httpRefusal(405, `This path takes ${allowed}.`, { allow: allowed });
  };
}

/** An undecodable value would be passed on undecoded, as a value that the client did not mean. */
function refuseQuery({ raw: { url = "" } }: FastifyRequest): Refusal | undefined {
  const at = url.indexOf("?");
  if (at === -1 || !url.includes("%", at)) return undefined;
  try {
    decodeURIComponent(url.slice(at + 1));
    return undefined;
  } catch {
    return httpRefusal(400, "The query cannot be decoded: its percent-encoding is not UTF-8.");
  }
}

/** With this content type a browser sends a preflight request, which is refused. A request without a body needs no type. */
function refuseContent({ method, headers, url }: FastifyRequest): Refusal | undefined {
  if (method === "GET" || method === "HEAD" || pathOf(url) === ACP_PATH) return undefined;
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
