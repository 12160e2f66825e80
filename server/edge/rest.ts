import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { HttpRoute, MethodRow } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import type { Dispatcher } from "../rpc/dispatcher.ts";
import { parseJson } from "../rpc/parse.ts";
import { grantOf } from "./admission.ts";
import { refusal, written } from "./refusal.ts";

export interface RestOptions {
  readonly dispatcher: Dispatcher;
  /** How deep a body may be nested. */
  readonly maxNestingDepth: number;
  /** How long somebody may take to read an answer. */
  readonly answerTimeoutMs: number;
  readonly log: Logger;
}

type Params = Record<string, unknown>;

/** A method behind a path and a verb. */
interface Target {
  readonly method: string;
  readonly row: MethodRow;
  readonly route: HttpRoute;
}

/** The methods that have a path, by the path as fastify writes it and the verb. */
const targets: ReadonlyMap<string, readonly Target[]> = Map.groupBy(
  Object.entries<MethodRow>(methods).flatMap(([method, row]): Target[] =>
    row.http === undefined ? [] : [{ method, row, route: row.http }],
  ),
  ({ route }) => `${route.verb} ${route.path}`,
);

/** The paths of the method table, with the verbs that each takes. `{names}` stand for one segment each. */
export const restPaths: readonly { readonly path: RegExp; readonly verbs: string }[] = [
  ...Map.groupBy(
    [...targets.values()].flatMap(([first]) => (first === undefined ? [] : [first.route])),
    ({ path }) => path,
  ),
].map(([path, routes]) => ({
  path: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  verbs: routes.map(({ verb }) => (verb === "GET" ? "GET, HEAD" : verb)).join(", "),
}));

/** Puts the paths of the method table into an app. A route is a row of the table and a call of the dispatcher. */
export function addRest(app: FastifyInstance, options: RestOptions): void {
  for (const [, rows] of targets) {
    const [first] = rows;
    if (first === undefined) continue;
    app.route({
      method: first.route.verb,
      url: first.route.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      handler: async (request, reply) => await answer(rows, request, reply, options),
    });
  }
}

async function answer(
  rows: readonly Target[],
  request: FastifyRequest,
  reply: FastifyReply,
  { dispatcher, maxNestingDepth, answerTimeoutMs, log }: RestOptions,
): Promise<FastifyReply> {
  try {
    const query = request.query as Params;
    const { method, row } = targetOf(rows, query);
    const conversation = dispatcher.converse(undefined, grantOf(request.raw));
    reply.raw.once("close", () => conversation.end());
    const body = bodyOf(request.body as Buffer | undefined, maxNestingDepth);
    const params = merged(request.params as Params, fromQuery(query, row), body);
    const response = await conversation.call(method, params);
    // Who does not read the answer is not waited for.
    reply.raw.setTimeout(answerTimeoutMs);
    if ("error" in response) return await refuse(reply, errorOf(response.error));
    return await reply.type("application/json").send(textOf(response.result, log));
  } catch (error) {
    if (error instanceof WireError) return await refuse(reply, error);
    throw error;
  }
}

function targetOf(rows: readonly Target[], query: Params): Target {
  const chosen =
    rows.find(({ route }) => route.ifQuery !== undefined && Object.hasOwn(query, route.ifQuery)) ??
    rows.find(({ route }) => route.ifQuery === undefined);
  if (chosen === undefined) throw new WireError("invalid_params", "The query lacks a name that this path needs.");
  return chosen;
}

function bodyOf(body: Buffer | undefined, maxDepth: number): Params {
  if (body === undefined || body.length === 0) return {};
  const value = parseJson(body, maxDepth);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Params;
  throw new WireError("invalid_params", "The body is not a JSON object.", {
    findings: [{ path: "", message: "must be an object" }],
  });
}

/** A param may be given once: in the path, in the query, or in the body. */
function merged(...parts: readonly Params[]): Params {
  const entries = parts.flatMap((part) => Object.entries(part));
  const names = new Set<string>();
  for (const [name] of entries) {
    if (names.has(name)) {
      throw new WireError("invalid_params", `"${name.slice(0, 200)}" is given twice.`, {
        findings: [{ path: `/${name.slice(0, 200)}`, message: "is given twice" }],
      });
    }
    names.add(name);
  }
  // Each becomes a property of its own, `__proto__` too, which the params' check then refuses.
  return Object.fromEntries(entries);
}

interface PropertySchema {
  readonly type?: string;
}

/** Query values are text: those of numbers, booleans and lists are read as such. Others go on as they are. */
function fromQuery(query: Params, { params }: MethodRow): Params {
  const { properties } = params as { readonly properties?: Readonly<Record<string, PropertySchema>> };
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const schema = properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
      return [name, readValue(value, schema?.type)];
    }),
  );
}

function readValue(value: unknown, type: string | undefined): unknown {
  if (type === "array") return Array.isArray(value) ? value : String(value).split(",");
  if (typeof value !== "string") return value;
  if (type === "integer" && /^-?\d{1,15}$/.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}

function textOf(result: unknown, log: Logger): string {
  try {
    return JSON.stringify(result ?? null);
  } catch (error) {
    log.error({ err: error }, "a result could not be written as JSON");
    throw new WireError("internal_error", "The result could not be written as JSON.");
  }
}

function errorOf({ message, data }: { readonly message: string; readonly data?: unknown }): WireError {
  const { name, retryable: _derived, ...details } = data as WireError["data"];
  return new WireError(name, message, details);
}

function refuse(reply: FastifyReply, error: WireError): FastifyReply {
  const { status, headers, body } = written(refusal(error));
  return reply.code(status).headers(headers).send(body);
}
