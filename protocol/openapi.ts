import { errorCatalogue } from "./errors.ts";
import { type FixedRoute, fixedRoutes } from "./fixed-routes.ts";
import { type HttpRoute, type MethodRow, type MethodTable, routeOf } from "./method-row.ts";
import { methods } from "./methods.ts";
import { namedObjects, namedTypes } from "./named-schemas.ts";
import { shapeOf } from "./schema-text.ts";
import { PROTOCOL_VERSION } from "./wire.ts";

type Json = Record<string, unknown>;

interface Target {
  readonly method: string;
  readonly row: MethodRow;
  readonly route: HttpRoute;
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
  const targets = Object.entries(table).flatMap(([method, row]): Target[] => {
    const route = routeOf(row);
    return route === undefined ? [] : [{ method, row, route }];
  });
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
      },
    },
  };
}

const problemSchema = {
  type: "object",
  description: "An error (RFC 9457), with what it has to add.",
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
    operationId: method,
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
              : ["application/json", { schema: refer(one.row.result) }],
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

/** What stands in the path, in the query and in headers. With a body, what is not in the path can be in the query too. */
function parametersOf({ row, route }: Target): Json[] {
  const inPath = namesIn(route);
  const { properties = {}, required = [] } = row.params as ObjectSchema;
  const hasBody = route.verb === "POST" || route.verb === "PUT";
  const parameters = Object.entries(properties).flatMap(([name, schema]): Json[] => {
    const place = inPath.includes(name) ? "path" : "query";
    if (place === "query" && hasBody) return [];
    const isNeeded = place === "path" || required.includes(name);
    return [{ name, in: place, required: isNeeded, schema: refer(schema), ...(isList(schema) && { explode: false }) }];
  });
  if ("idempotencyKey" in properties)
    parameters.push({
      name: "Idempotency-Key",
      in: "header",
      required: false,
      schema: refer(properties["idempotencyKey"]),
    });
  if (route.stream === true) {
    const description = "The id of the last event that the client has: it goes on behind that.";
    parameters.push({ name: "Last-Event-ID", in: "header", required: false, description, schema: { type: "string" } });
  }
  return parameters;
}

function bodyOf({ row, route }: Target): Json {
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
      },
    },
  };
}

function fixedOperation({ verb, summary, answers, isOpen, path }: FixedRoute): Json {
  const content = { "application/json": { schema: {} } };
  return {
    operationId: path.replaceAll(/\W+/g, " ").trim().replaceAll(" ", "."),
    summary,
    tags: ["http"],
    ...(isOpen === true && { security: [] }),
    ...(verb === "POST" && { requestBody: { required: true, content } }),
    responses: {
      200: { description: "The answer.", content: { [answers]: { schema: {} } } },
      default: { description: "An error.", content: problem },
    },
  };
}

function namesIn({ path }: HttpRoute): readonly string[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => name);
}

function isList(schema: Json): boolean {
  return schema["type"] === "array";
}

/** A schema, or a reference to one that has a name, with its own description. */
function refer(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(refer);
  const name = nameByShape.get(shapeOf(schema));
  if (name === undefined) return inner(schema);
  const { description } = schema as { readonly description?: string };
  return { $ref: `#/components/schemas/${name}`, ...(description !== undefined && { description }) };
}

function inner(schema: object): Json {
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, refer(value)]));
}
