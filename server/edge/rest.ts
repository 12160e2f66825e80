import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { type HttpRoute, type MethodRow, type MethodTable, routesOf } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import type { RpcResponse } from "../../protocol/wire.ts";
import { resultText, type Text } from "../rpc/answer-text.ts";
import type { Peer } from "../rpc/call.ts";
import type { Conversation, Dispatcher } from "../rpc/dispatcher.ts";
import type { JsonLimits } from "../rpc/parse.ts";
import { accepted } from "./accept.ts";
import { grantOf, isLocal } from "./admission.ts";
import type { Answers } from "./answers.ts";
import type { EventStreams } from "./event-streams.ts";
import { httpRefusal, type Refusal, refusal } from "./refusal.ts";
import { sendRefusal } from "./reply.ts";
import { fromBody, fromHeaders, fromQuery, merged, type Params, withLastEventId } from "./request-params.ts";
import { whenGone } from "./when-gone.ts";

export interface RestOptions {
  readonly dispatcher: Dispatcher;
  readonly streams: EventStreams;
  /** Of a body. */
  readonly jsonLimits: JsonLimits;
  readonly answers: Answers;
  readonly log: Logger;
}

/** A method behind a path and a verb. */
interface Target {
  readonly method: string;
  readonly row: MethodRow;
  readonly route: HttpRoute;
}

/** A path of a table, with the verbs that it takes. */
export interface RestPath {
  readonly path: RegExp;
  readonly verbs: string;
}

const json = "application/json";
const eventStream = "text/event-stream";

/** The methods of a table that have a path, by the path as fastify writes it and the verb. */
function targetsOf(table: MethodTable): ReadonlyMap<string, readonly Target[]> {
  const targets = Object.entries(table).flatMap(([method, row]) =>
    routesOf(row).map((route): Target => ({ method, row, route })),
  );
  return Map.groupBy(targets, ({ route }) => `${route.verb} ${route.path}`);
}

/** The paths of a table. `{names}` stand for one segment each. */
export function restPaths(table: MethodTable = methods): readonly RestPath[] {
  const routes = [...targetsOf(table).values()].flatMap(([first]) => (first === undefined ? [] : [first.route]));
  return [...Map.groupBy(routes, ({ path }) => path)].map(([path, found]) => ({
    path: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    verbs: found.map(({ verb }) => (verb === "GET" ? "GET, HEAD" : verb)).join(", "),
  }));
}

/** Puts the paths of the method table into an app. A route is a row of the table and a call of the dispatcher. */
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

/** A promise only where the method has one: most answer at once. */
function answer(
  place: Place,
  request: FastifyRequest,
  reply: FastifyReply,
  options: RestOptions,
): Promise<void> | undefined {
  const { dispatcher, streams } = options;
  const converse = (peer?: Peer): Conversation => dispatcher.converse(peer, grantOf(request.raw), isLocal(request.raw));
  try {
    const target = targetOf(place, request);
    if ("status" in target) {
      sendRefusal(reply, target);
      return undefined;
    }
    const params = paramsOf(target, request, options.jsonLimits);
    if (target.route.stream === true) {
      return stream(request, reply, streams, converse, target.method, params).catch((error) => refuse(reply, error));
    }
    const conversation = converse();
    const lane = dispatcher.lane(grantOf(request.raw));
    const response = conversation.call(target.method, params);
    if (!(response instanceof Promise)) {
      lane.count(() => respond(request, reply, response, options));
      return undefined;
    }
    whenGone(request.raw, reply.raw, () => conversation.end());
    return response
      .then((found) => lane.count(() => respond(request, reply, found, options)))
      .catch((error) => refuse(reply, error));
  } catch (error) {
    refuse(reply, error);
    return undefined;
  }
}

function respond(
  request: FastifyRequest,
  reply: FastifyReply,
  response: RpcResponse,
  { answers, log }: RestOptions,
): void {
  if ("error" in response) answers.refuse(reply, refusal(errorOf(response.error)));
  else answers.send(request, reply, textOf(response.result, log));
}

/** Throws what is no error of the wire. */
function refuse(reply: FastifyReply, error: unknown): void {
  if (!(error instanceof WireError)) throw error;
  sendRefusal(reply, refusal(error));
}

async function stream(
  { method: verb }: FastifyRequest,
  reply: FastifyReply,
  streams: EventStreams,
  converse: (peer: Peer) => Conversation,
  method: string,
  params: Params,
): Promise<void> {
  // A subscription is not begun for its head alone.
  if (verb === "HEAD") void reply.type(eventStream).send();
  else await streams.open(reply, converse, method, params);
}

/** The methods behind a path and a verb, with what each answers with. */
interface Place {
  readonly rows: readonly Target[];
  readonly types: readonly string[];
  /** All of these, those first that are given to who takes any: events, where there are some. */
  readonly offered: readonly string[];
}

function placeOf(rows: readonly Target[]): Place {
  const types = rows.map(({ route }) => (route.stream === true ? eventStream : json));
  return { rows, types, offered: [...new Set(types)].sort((a, b) => b.localeCompare(a)) };
}

/** Of the methods behind a path the one that a request is for, by its query and by what it accepts. */
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

/** An error of the wire as one that can be thrown. */
export function errorOf({ message, data }: { readonly message: string; readonly data?: unknown }): WireError {
  const { name, retryable: _derived, ...details } = data as WireError["data"];
  return new WireError(name, message, details);
}
