import type { IncomingMessage, ServerResponse } from "node:http";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { fixedRoutes } from "../../protocol/fixed-routes.ts";
import type { Result } from "../../protocol/methods.ts";
import { openApiDocument } from "../../protocol/openapi.ts";
import { HEALTH_PATH, METRICS_PATH, RPC_PATH, WEBSOCKET_PATH } from "../../protocol/wire.ts";
import { type Dispatcher, defaultDispatcherLimits } from "../rpc/dispatcher.ts";
import { accepted } from "./accept.ts";
import { grantOf } from "./admission.ts";
import { Answers } from "./answers.ts";
import type { EventStreams } from "./event-streams.ts";
import type { EdgeLimits } from "./limits.ts";
import { metricsContentType, metricsText } from "./metrics-text.ts";
import { referenceHeaders, referencePage } from "./reference-page.ts";
import { httpRefusal, pathOf, type Refusal, refusal, refuseRequest, unknownTransferCoding } from "./refusal.ts";
import { jsonHeaders, sendRefusal } from "./reply.ts";
import { addRest, errorOf, restPaths } from "./rest.ts";
import { RpcOverHttp } from "./rpc-over-http.ts";

export interface HttpOptions {
  readonly dispatcher: Dispatcher;
  readonly streams: EventStreams;
  /** Of the package, for documents. */
  readonly version: string;
  readonly limits: EdgeLimits;
  readonly log: Logger;
}

export interface Http {
  /** To be made ready and closed. */
  readonly app: FastifyInstance;
  /** Answers one request. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void;
}

const paths = restPaths();
const verbsByPath = new Map(
  fixedRoutes.map(({ verb, path }) => [path as string, verb === "GET" ? "GET, HEAD" : verb] as const),
);

/**
 * The HTTP routes, for requests that were admitted. They have no logic of their own: a body goes to the dispatcher as
 * it came. What can be said from the head alone is said before the body is read.
 */
export function createHttp({ dispatcher, streams, version, limits, log }: HttpOptions): Http {
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
  app.removeAllContentTypeParsers();
  // What came under that name alone is looked up once; others are read anew each time.
  for (const type of ["application/json", "*"]) {
    app.addContentTypeParser(type, { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  }
  app.addHook("onRequest", (request, reply, done) => {
    const refused = request.is404 ? refusePath(request) : (refuseContent(request) ?? refuseQuery(request));
    if (refused === undefined) done();
    else sendRefusal(reply, refused);
  });

  app.get(HEALTH_PATH, (_request, reply) => {
    void reply.headers(jsonHeaders).send('{"ok":true}');
  });
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
  const answers = new Answers(limits, (grant) => dispatcher.lane(grant));
  app.get("/openapi.json", (request, reply) =>
    answers.send(
      request,
      reply,
      once("openapi", () => JSON.stringify(openApiDocument(version))),
    ),
  );
  app.get("/docs", (request, reply) => {
    const headers = { ...referenceHeaders, "content-type": "text/html; charset=utf-8" };
    answers.send(
      request,
      reply,
      once("docs", () => referencePage(version)),
      headers,
    );
  });
  const rpc = new RpcOverHttp({ dispatcher, answers, limits, log });
  app.post(RPC_PATH, (request, reply) => {
    reply.hijack();
    void rpc.answer(request.raw, reply.raw, (request.body as Buffer | undefined) ?? Buffer.alloc(0));
  });

  app.get(METRICS_PATH, async (request, reply) => {
    const answer = await dispatcher.converse(undefined, grantOf(request.raw)).call("daemon/metrics", {});
    if ("error" in answer) answers.refuse(reply, refusal(errorOf(answer.error)));
    else {
      const { metrics } = answer.result as Result<"daemon/metrics">;
      answers.send(request, reply, metricsText(metrics), { "content-type": metricsContentType });
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
    if (status === 413) {
      reply.hijack();
      refuseRequest(reply.raw, tooLarge(limits.maxBodyBytes), limits);
      return;
    }
    if (status < 500) {
      sendRefusal(reply, httpRefusal(status, error.message));
      return;
    }
    log.error({ err: error }, "an HTTP request failed");
    sendRefusal(reply, httpRefusal(status, "The daemon failed; its log has the cause."));
  });
  return {
    app,
    serve: (request, response) => {
      if (!rpc.serve(request, response)) app.routing(request, response);
    },
  };
}

/** What speaks against a request's body, by its head alone: before the peer is told to send it. */
export function refuseBody({ headers }: IncomingMessage, { maxBodyBytes }: EdgeLimits): Refusal | undefined {
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.trim().toLowerCase() !== "chunked") return unknownTransferCoding();
  const length = Number(headers["content-length"] ?? 0);
  return length > maxBodyBytes ? tooLarge(maxBodyBytes) : undefined;
}

/** The socket ends with it: what may still come of the body is not read to its end. */
function tooLarge(maxBodyBytes: number): Refusal {
  return httpRefusal(413, `The body is longer than the limit of ${maxBodyBytes} bytes.`, { connection: "close" });
}

function refusePath(request: FastifyRequest): Refusal {
  const path = pathOf(request.raw.url);
  const allowed = verbsByPath.get(path) ?? paths.find((rest) => rest.path.test(path))?.verbs;
  return allowed === undefined
    ? httpRefusal(404, "There is nothing at this path.")
    : httpRefusal(405, `This path takes ${allowed}.`, { allow: allowed });
}

/** Undecodable values would go on as they came, as values that the client did not mean. */
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
