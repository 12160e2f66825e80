import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { type HttpRoute, type MethodRow, type MethodTable, routesOf } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import type { RpcResponse } from "../../protocol/wire.ts";
import { resultText, type Text } from "../rpc/answer-text.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import type { JsonLimits } from "../rpc/parse.ts";
import { accepted } from "./accept.ts";
import { grantOf, isLocal } from "./admission.ts";
import type { Answers } from "./answers.ts";
import type { EventStreams } from "./event-streams.ts";
import { httpRefusal, type Refusal, refusal, wireErrorOf } from "./refusal.ts";
import { fromBody, fromHeaders, fromQuery, merged, type Params, withLastEventId } from "./request-params.ts";
import { whenGone } from "./when-gone.ts";

export interface RestOptions {
  readonly dispatcher: Dispatcher;
  readonly streams: EventStreams;
  /** The limits of a body. */
  readonly jsonLimits: JsonLimits;
  readonly answers: Answers;
  readonly log: Logger;
}

/** A method with its path and verb. */
interface Target {
  readonly method: string;
  readonly row: MethodRow;
  readonly route: HttpRoute;
}

/** A path of a table and its verbs. */
export interface RestPath {
  readonly path: RegExp;
  readonly verbs: string;
}

const json = "application/json";
const eventStream = "text/event-stream";

/** Groups the methods of a table by verb and path. */
function targetsOf(table: MethodTable): ReadonlyMap<string, readonly Target[]> {
  const targets = Object.entries(table).flatMap(([method, row]) =>
    routesOf(row).map((route): Target => ({ method, row, route })),
  );
  return Map.groupBy(targets, ({ route }) => `${route.verb} ${route.path}`);
}

/** Returns the paths of a table. Each `{name}` matches one segment. */
export function restPaths(table: MethodTable = methods): readonly RestPath[] {
  const routes = [...targetsOf(table).values()].flatMap(([first]) => (first === undefined ? [] : [first.route]));
  return [...Map.groupBy(routes, ({ path }) => path)].map(([path, found]) => ({
    path: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    verbs: found.map(({ verb }) => (verb === "GET" ? "GET, HEAD" : verb)).join(", "),
  }));
}

/** Adds the paths of the method table to an app. A route is a row of the table and a call of the dispatcher. */
export function addRest(app: FastifyInstance, options: RestOptions, table: MethodTable = methods): void {
  for (const rows of targetsOf(table).values()) {
    const [first] = rows;
    if (first === undefined) continue;
    const place = placeOf(rows);
    app.route({
      method: first.route.verb,
      url: first.route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      handler: (request, reply) => answer(place, request, reply, options),
    });
  }
}

function answer(
  place: Place,
  request: FastifyRequest,
  reply: FastifyReply,
  { dispatcher, streams, jsonLimits, answers, log }: RestOptions,
): Promise<void> | undefined {
  const target = targetOf(place, request);
  if ("status" in target) {
    answers.refuse(reply, target);
    return undefined;
  }
  const { method, route } = target;
  const params = paramsOf(target, request, jsonLimits);
  if (route.stream !== true) {
    return answerCall({ request, reply, dispatcher, method, params }, (result) =>
      answers.send(request, reply, textOf(result, log)),
    );
  }
  // A subscription is not started for its head alone.
  if (request.method === "HEAD") {
    void reply.type(eventStream).send();
    return undefined;
  }
  const { raw } = request;
  return streams.open(reply, (peer) => dispatcher.converse(peer, grantOf(raw), isLocal(raw)), method, params);
}

export interface CallOverHttp {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly dispatcher: Dispatcher;
  readonly method: string;
  readonly params: Params;
}

/**
 * Calls a method for a request, and writes its result in the token's turn: at once if the method answers at once. Throws
 * the method's error, or rejects with it.
 */
export function answerCall(call: CallOverHttp, write: (result: unknown) => void): Promise<void> | undefined {
  const { request, reply, dispatcher, method, params } = call;
  const grant = grantOf(request.raw);
  const conversation = dispatcher.converse(undefined, grant, isLocal(request.raw));
  const finish = (response: RpcResponse): void => {
    if ("error" in response) throw wireErrorOf(response.error);
    write(response.result);
  };
  const response = conversation.call(method, params);
  if (!(response instanceof Promise)) {
    finish(response);
    return undefined;
  }
  whenGone(request.raw, reply.raw, () => conversation.end());
  return response.then((found) => dispatcher.lane(grant).pass(() => finish(found), { isFirst: true }));
}

/** The methods of one verb and path, and the content type of each. */
interface Place {
  readonly rows: readonly Target[];
  readonly types: readonly string[];
  /** The different types. A client that accepts any gets the first: events, if there is a stream. */
  readonly offered: readonly string[];
}

function placeOf(rows: readonly Target[]): Place {
  const types = rows.map(({ route }) => (route.stream === true ? eventStream : json));
  return { rows, types, offered: [...new Set(types)].sort((a, b) => b.localeCompare(a)) };
}

/** Chooses the method of a path by the request's query and its `Accept` header. */
function targetOf({ rows, types, offered }: Place, { query, headers }: FastifyRequest): Target | Refusal {
  const type = accepted(headers.accept, offered);
  if (type === undefined) return httpRefusal(406, `This path answers with ${offered.join(" or ")}.`);
  const [first] = rows;
  if (rows.length === 1 && first?.route.ifQuery === undefined) return first as Target;
  const fitting = rows.filter((_row, i) => types[i] === type);
  return (
    fitting.find(({ route }) => route.ifQuery !== undefined && Object.hasOwn(query as Params, route.ifQuery)) ??
    fitting.find(({ route }) => route.ifQuery === undefined) ??
    refusal(new WireError("invalid_params", "The query lacks a name that this path needs."))
  );
}

function paramsOf({ method, row, route }: Target, request: FastifyRequest, limits: JsonLimits): Params {
  const { headers } = request;
  const query = fromQuery(request.query as Params, row);
  return merged(
    request.params as Params,
    route.stream === true ? withLastEventId(query, headers) : query,
    fromHeaders(headers, method, row),
    fromBody(request.body as Buffer | undefined, limits),
  );
}

function textOf(result: unknown, log: Logger): Text {
  try {
    return resultText(result);
  } catch (error) {
    log.error({ err: error }, "a result could not be written as JSON");
    throw new WireError("internal_error", "The result could not be written as JSON.");
  }
}
