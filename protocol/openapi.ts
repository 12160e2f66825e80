import { errorCatalogue, WireError } from "./errors.ts";
import { type Example, exampleOf } from "./examples.ts";
import { type FixedRoute, fixedRoutes } from "./fixed-routes.ts";
import { type HttpRoute, type MethodRow, type MethodTable, routesOf } from "./method-row.ts";
import { isMethodName, methods } from "./methods.ts";
import { namedObjects, namedTypes } from "./named-schemas.ts";
import { PROTOCOL_VERSION, RPC_PATH } from "./wire.ts";

type Json = Record<string, unknown>;

interface Target {
  readonly method: string;
  readonly row: MethodRow;
  readonly route: HttpRoute & { readonly isFormer: boolean };
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

const named = { ...namedTypes, ...namedObjects };
const nameByShape = new Map(Object.entries(named).map(([name, schema]) => [shapeOf(schema), name]));
const problem = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };

/** The paths of the protocol as an OpenAPI 3.1 document. Methods that share a path and a verb are one operation. */
export function openApiDocument(version: string, table: MethodTable = methods): Json {
  const targets = Object.entries(table).flatMap(([method, row]) =>
    routesOf(row).map((route): Target => ({ method, row, route })),
  );
  const paths: Record<string, Json> = {};
  for (const route of fixedRoutes) paths[route.path] = { [route.verb.toLowerCase()]: fixedOperation(route) };
  for (const [, rows] of Map.groupBy(targets, ({ route }) => `${route.verb} ${route.path}`)) {
    const [first] = rows;
    if (first === undefined) continue;
    paths[first.route.path] = { ...paths[first.route.path], [first.route.verb.toLowerCase()]: operation(rows) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "pi-rpcd",
      version,
      license: { name: "MIT", identifier: "MIT" },
      description: `Sessions of the pi coding agent over HTTP. Protocol version ${PROTOCOL_VERSION}.`,
    },
    servers: [{ url: "/", description: "The daemon, on its Unix socket or on loopback." }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer", description: "The token in daemon.json." } },
      schemas: {
        ...Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, inner(schema)])),
        Problem: problemSchema,
        ...rpcSchemas,
      },
    },
  };
}

const problemSchema = {
  type: "object",
  description: "An error (RFC 9457), with additional fields of its kind.",
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string", description: "What was attempted, why it failed, what to do." },
    name: { type: "string", enum: Object.keys(errorCatalogue), description: "The error's name in the catalogue." },
    retryable: { type: "boolean", description: "Whether the same request may succeed later." },
  },
  required: ["type", "title", "status", "detail", "name", "retryable"],
  additionalProperties: true,
};

const rpcRef = (name: keyof typeof rpcSchemas): Json => ({ $ref: `#/components/schemas/${name}` });
const oneOrBatch = (name: keyof typeof rpcSchemas): Json => ({
  oneOf: [rpcRef(name), { type: "array", minItems: 1, items: rpcRef(name) }],
});
const rpcId = { type: ["string", "number", "null"] };

/** The JSON-RPC 2.0 bodies. */
const rpcSchemas = {
  RpcRequest: {
    type: "object",
    description: "A call; a notification if it has no `id`.",
    properties: { jsonrpc: { const: "2.0" }, id: rpcId, method: { type: "string" }, params: { type: "object" } },
    required: ["jsonrpc", "method"],
    additionalProperties: false,
  },
  RpcSuccess: {
    type: "object",
    properties: { jsonrpc: { const: "2.0" }, id: rpcId, result: {} },
    required: ["jsonrpc", "id", "result"],
    additionalProperties: false,
  },
  RpcFailure: {
    type: "object",
    properties: {
      jsonrpc: { const: "2.0" },
      id: { ...rpcId, description: "`null` if the body was not JSON or not a request." },
      error: {
        type: "object",
        properties: {
          code: { type: "integer" },
          message: { type: "string", description: "What was attempted, why it failed, what to do." },
          data: {
            type: "object",
            properties: {
              name: { type: "string", enum: Object.keys(errorCatalogue) },
              retryable: { type: "boolean", description: "Whether the same call may succeed later." },
            },
            required: ["name", "retryable"],
            additionalProperties: true,
          },
        },
        required: ["code", "message", "data"],
        additionalProperties: false,
      },
    },
    required: ["jsonrpc", "id", "error"],
    additionalProperties: false,
  },
  RpcAnswer: {
    oneOf: [{ $ref: "#/components/schemas/RpcSuccess" }, { $ref: "#/components/schemas/RpcFailure" }],
  },
};

function rpcOperation(): Json {
  const json = (schema: Json, example: unknown): Json => ({ "application/json": { schema, example } });
  const { params, result } = exampleOf("session/prompt");
  const request = { jsonrpc: "2.0", id: 1, method: "session/prompt", params };
  const error = new WireError("parse_error", "The text is not JSON.");
  const { code, message, data } = error;
  return {
    requestBody: { required: true, content: json(oneOrBatch("RpcRequest"), request) },
    responses: {
      200: {
        description: "The answer, or the answers of a batch: results, and errors of calls.",
        content: json(oneOrBatch("RpcAnswer"), { jsonrpc: "2.0", id: 1, result }),
      },
      204: { description: "The body contained only notifications." },
      400: {
        description: "The body is not JSON, or not a request.",
        content: json(rpcRef("RpcFailure"), { jsonrpc: "2.0", id: null, error: { code, message, data } }),
      },
      default: { description: "Refused by HTTP, before JSON-RPC.", content: problem },
    },
  };
}

function operation(rows: readonly Target[]): Json {
  const main = rows.find(({ route }) => route.ifQuery === undefined && route.stream !== true) ?? (rows[0] as Target);
  const others = rows.filter((one) => one !== main);
  const { method, row, route } = main;
  const taken = new Map(
    rows.flatMap((one) => parametersOf(one).map((parameter) => [String(parameter["name"]), parameter])),
  );
  const hasBody = route.verb === "POST" || route.verb === "PUT";
  const errors = [...new Set(rows.flatMap((one) => one.row.errors))];
  return {
    operationId: route.isFormer ? `${method}.former` : method,
    ...(route.isFormer && { deprecated: true }),
    summary: row.summary,
    ...(others.length > 0 && { description: others.map(otherwise).join("\n\n") }),
    tags: [method.split(/[/.]/, 1)[0]],
    parameters: [...taken.values()],
    ...(hasBody && { requestBody: bodyOf(main) }),
    responses: {
      200: {
        description: "The result.",
        content: Object.fromEntries(
          rows.map((one) =>
            one.route.stream === true
              ? ["text/event-stream", { schema: { type: "string", description: one.row.summary } }]
              : [
                  "application/json",
                  { schema: refer(one.row.result), ...exampleIn(one.method, ({ result }) => result) },
                ],
          ),
        ),
      },
      ...Object.fromEntries(
        [...Map.groupBy(errors, (error) => errorCatalogue[error].httpStatus)].map(([status, names]) => [
          status,
          { description: names.join(", "), content: problem },
        ]),
      ),
      default: { description: "Another error.", content: problem },
    },
    "x-capability": row.capability,
    "x-method": method,
  };
}

function otherwise({ method, row, route }: Target): string {
  const when = route.stream === true ? "With `Accept: text/event-stream`" : `With \`${route.ifQuery}\``;
  return `${when}: \`${method}\`. ${row.summary}`;
}

/**
 * Parameters in the path, in the query and in headers. Even with a body, params that are not in the path can be in
 * the query.
 */
function parametersOf({ method, row, route }: Target): Json[] {
  const inPath = namesIn(route);
  const { properties = {}, required = [] } = row.params as ObjectSchema;
  const hasBody = route.verb === "POST" || route.verb === "PUT";
  const parameters = Object.entries(properties).flatMap(([name, schema]): Json[] => {
    const place = inPath.includes(name) ? "path" : "query";
    if (place === "query" && hasBody) return [];
    const isNeeded = place === "path" || required.includes(name);
    const isShown = isNeeded && !isList(schema);
    return [
      {
        name,
        in: place,
        required: isNeeded,
        schema: refer(schema),
        ...(isList(schema) && { explode: false }),
        ...(isShown && exampleIn(method, ({ params }) => params[name])),
      },
    ];
  });
  if ("idempotencyKey" in properties)
    parameters.push({
      name: "Idempotency-Key",
      in: "header",
      required: false,
      schema: refer(properties["idempotencyKey"]),
    });
  if (route.stream === true) {
    const description = "The id of the last event that the client has received; the stream continues after it.";
    parameters.push({ name: "Last-Event-ID", in: "header", required: false, description, schema: { type: "string" } });
  }
  return parameters;
}

function bodyOf({ method, row, route }: Target): Json {
  const inPath = namesIn(route);
  const { properties = {}, required = [] } = row.params as ObjectSchema;
  const needed = required.filter((name) => !inPath.includes(name));
  const fields = Object.entries(properties).filter(([name]) => !inPath.includes(name));
  return {
    required: needed.length > 0,
    content: {
      "application/json": {
        schema: {
          type: "object",
          properties: Object.fromEntries(fields.map(([name, schema]) => [name, refer(schema)])),
          ...(needed.length > 0 && { required: needed }),
          additionalProperties: false,
        },
        ...exampleIn(method, ({ params }) =>
          Object.fromEntries(Object.entries(params).filter(([name]) => !inPath.includes(name))),
        ),
      },
    },
  };
}

/** A part of a method's example; undefined for methods of other tables. */
function exampleIn(method: string, part: (example: Example) => unknown): Json {
  if (!isMethodName(method)) return {};
  const example = part(exampleOf(method));
  return example === undefined ? {} : { example };
}

function fixedOperation({ summary, answers, isOpen, path }: FixedRoute): Json {
  return {
    operationId: path.replaceAll(/\W+/g, " ").trim().replaceAll(" ", "."),
    summary,
    tags: ["http"],
    ...(isOpen === true && { security: [] }),
    ...(path === RPC_PATH
      ? rpcOperation()
      : {
          responses: {
            200: { description: "The answer.", content: { [answers]: { schema: {} } } },
            default: { description: "An error.", content: problem },
          },
        }),
  };
}

function namesIn({ path }: HttpRoute): readonly string[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => name);
}

function isList(schema: Json): boolean {
  return schema["type"] === "array";
}

/** A schema, or a reference to a named one, with its own description and default. */
function refer(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(refer);
  const name = nameByShape.get(shapeOf(schema));
  if (name === undefined) return inner(schema);
  const { description, default: value } = schema as { readonly description?: string; readonly default?: unknown };
  return {
    $ref: `#/components/schemas/${name}`,
    ...(description !== undefined && { description }),
    ...(value !== undefined && { default: value }),
  };
}

/** A schema without its own description and default, which may differ where the same type is used. */
function shapeOf(schema: object): string {
  return JSON.stringify({ ...schema, description: undefined, default: undefined });
}

function inner(schema: object): Json {
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, refer(value)]));
}
