import { Ajv2020 } from "ajv/dist/2020.js";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { fixedRoutes } from "../../../protocol/fixed-routes.ts";
import { isReading, type MethodTable, routeOf } from "../../../protocol/method-row.ts";
import { methods } from "../../../protocol/methods.ts";
import { openApiDocument } from "../../../protocol/openapi.ts";
import { Answers } from "../../../server/edge/answers.ts";
import { BufferBudget } from "../../../server/edge/buffer-budget.ts";
import { EventStreams } from "../../../server/edge/event-streams.ts";
import { createHttp } from "../../../server/edge/http.ts";
import { defaultEdgeLimits } from "../../../server/edge/limits.ts";
import { createQuotas } from "../../../server/edge/quotas.ts";
import { referencePage } from "../../../server/edge/reference-page.ts";
import { restPaths } from "../../../server/edge/rest.ts";
import { RpcOverHttp } from "../../../server/edge/rpc-over-http.ts";
import type { Conversation, Dispatcher } from "../../../server/rpc/dispatcher.ts";
import { Turns } from "../../../server/rpc/turns.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

const table: MethodTable = methods;
const document = JSON.parse(JSON.stringify(openApiDocument("0.0.0"))) as Unchecked;
const operations = Object.entries<Unchecked>(document.paths).flatMap(([path, verbs]) =>
  Object.entries<Unchecked>(verbs).map(([verb, operation]) => ({ path, verb, operation })),
);

/** A dispatcher that returns each call as its result. */
const echo: Dispatcher = {
  converse: (): Conversation => ({
    receive: () => Promise.resolve(undefined),
    call: (method, params) => Promise.resolve({ jsonrpc: "2.0", id: 1, result: { method, params } }),
    end: () => {},
  }),
  lane: () => new Turns().of(undefined),
};

interface Asked {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The HTTP routes of a table on a free port, over the dispatcher that returns each call. */
async function appOver(rows: MethodTable) {
  const log = pino({ level: "silent" });
  const limits = defaultEdgeLimits;
  const { eventStreams: quota, unreadBytes: unread } = createQuotas(limits);
  const streams = new EventStreams({ limits, quota, budget: new BufferBudget(1), lane: echo.lane, log });
  const answers = new Answers({ limits, unread, lane: echo.lane });
  const rpc = new RpcOverHttp({ dispatcher: echo, answers, limits, log });
  const app = createHttp({ dispatcher: echo, streams, answers, rpc, version: "0", limits, log }, rows);
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return {
    ask: async (path: string, { headers, ...asked }: Asked): Promise<Unchecked> =>
      (await fetch(`${url}${path}`, { ...asked, headers: { connection: "close", ...headers } })).json(),
    [Symbol.asyncDispose]: async () => {
      await streams.stop();
      await app.close();
    },
  };
}

describe("a row of the method table", () => {
  const rows: MethodTable = {
    ...table,
    "moon/phase": {
      ...table["session/get"],
      summary: "How much of the moon is seen.",
      http: { verb: "GET", path: "/v1/moons/{sessionId}/phase" },
    } as MethodTable[string],
  };

  test("with a path has a route, an OpenAPI entry and a section in the reference", async () => {
    await using app = await appOver(rows);
    expect(await app.ask("/v1/moons/s-1/phase", { method: "GET" })).toEqual({
      method: "moon/phase",
      params: { sessionId: "s-1" },
    });
    expect(restPaths(rows).find(({ path }) => path.test("/v1/moons/s-1/phase"))?.verbs).toBe("GET, HEAD");
    const { paths } = openApiDocument("0", rows) as Unchecked;
    expect(paths["/v1/moons/{sessionId}/phase"].get).toMatchObject({ operationId: "moon/phase" });
    const page = referencePage("0", rows);
    expect(page).toContain('<h3 id="moonphase">');
    expect(page).toContain("<code>GET /v1/moons/{sessionId}/phase</code>");
  });

  test.each(Object.entries(table).filter(([, row]) => routeOf(row) === undefined))(
    "%s has no path, and gives the reason",
    (name, { http }) => {
      expect("none" in http && http.none.length).toBeGreaterThan(10);
      expect(operations.filter(({ operation }) => operation["x-method"] === name)).toEqual([]);
    },
  );

  const routed = Object.entries(table).flatMap(([name, row]) => {
    const route = routeOf(row);
    return route === undefined || route.stream === true ? [] : [{ name, row, route }];
  });

  test.each(routed)("$name is called by $route.verb $route.path", async ({ name, row, route }) => {
    await using app = await appOver(table);
    const names = Array.from(route.path.matchAll(/\{(\w+)\}/g), ([, one = ""]) => one);
    const url =
      route.path.replaceAll(/\{(\w+)\}/g, "$1-1") + (route.ifQuery === undefined ? "" : `?${route.ifQuery}=x`);
    const answer = await app.ask(url, { method: route.verb, headers: { accept: "application/json" } });
    const fromPath = Object.fromEntries(names.map((one) => [one, `${one}-1`]));
    const fromQuery = route.ifQuery === undefined ? {} : { [route.ifQuery]: "x" };
    expect(answer).toEqual({ method: name, params: { ...fromPath, ...fromQuery } });
    expect(Object.keys((row.params as Unchecked).properties)).toEqual(expect.arrayContaining(names));
    // A GET must not change anything, because following a link sends one.
    if (route.verb === "GET") expect(isReading(row)).toBe(true);
  });

  test("with a key takes it from one Idempotency-Key header; other rows refuse the header", async () => {
    await using app = await appOver(table);
    const ask = (path: string, key: string, body = {}) =>
      app.ask(path, {
        method: "POST",
        headers: { "idempotency-key": key, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const prompts = "/v1/sessions/s/prompts";
    for (const key of ["k-1", '"k-1"'])
      expect((await ask(prompts, key, { text: "x" })).params).toEqual({
        sessionId: "s",
        text: "x",
        idempotencyKey: "k-1",
      });
    expect(await ask(prompts, "k", { idempotencyKey: "k" })).toMatchObject({ name: "invalid_params" });
    expect(await ask("/v1/sessions/s/deliveries", "k")).toMatchObject({ name: "invalid_params" });
  });
});

describe("the OpenAPI document", () => {
  test("has every part that the specification requires, and no others", () => {
    const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
    expect(ajv.validate(openApiSubset, document), JSON.stringify(ajv.errors?.slice(0, 5))).toBe(true);
  });

  test("gives every operation a unique id and all params of its path", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation } of operations) {
      const inPath = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name);
      const declared = (operation.parameters ?? []).filter((one: Unchecked) => one.in === "path");
      expect(declared.map((one: Unchecked) => one.name).sort()).toEqual(inPath.sort());
      expect(declared.every((one: Unchecked) => one.required)).toBe(true);
      const places = (operation.parameters ?? []).map((one: Unchecked) => `${one.in} ${one.name}`);
      expect(new Set(places).size).toBe(places.length);
    }
  });

  test("has valid JSON Schema 2020-12 schemas whose references resolve", () => {
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema({ $id: "pi-rpcd", ...document }, "document");
    const refs = new Set(Array.from(JSON.stringify(document).matchAll(/"\$ref":"(#[^"]+)"/g), ([, ref = ""]) => ref));
    expect(refs.size).toBeGreaterThan(10);
    for (const ref of refs) {
      const at = ref
        .slice(2)
        .split("/")
        .reduce((value: Unchecked, key) => value?.[key], document);
      expect(at, ref).toBeTypeOf("object");
    }
    const schemas = [
      ...Object.values<Unchecked>(document.components.schemas),
      ...operations.flatMap(({ operation }) => [
        ...(operation.parameters ?? []).map((one: Unchecked) => one.schema),
        ...Object.values<Unchecked>(operation.requestBody?.content ?? {}).map((one) => one.schema),
        ...Object.values<Unchecked>(operation.responses["200"].content).map((one) => one.schema),
      ]),
    ];
    for (const schema of schemas) expect(ajv.validateSchema(schema), JSON.stringify(ajv.errors)).toBe(true);
  });

  test("has an example of each body, path and result that matches its schema", () => {
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema({ $id: "pi-rpcd", ...document }, "document");
    const examples = (operation: Unchecked): Unchecked[] => [
      ...(operation.parameters ?? []).filter((one: Unchecked) => one.required && one.schema.type !== "array"),
      ...[operation.requestBody, ...Object.values(operation.responses)].flatMap((body: Unchecked) =>
        Object.entries<Unchecked>(body?.content ?? {}).flatMap(([type, one]) =>
          type === "application/json" ? [one] : [],
        ),
      ),
    ];
    for (const { path, operation } of operations) {
      if (operation["x-method"] === undefined && path !== "/v1/rpc") continue;
      for (const { schema, example } of examples(operation)) {
        expect(example, path).toBeDefined();
        const whole = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"pi-rpcd#/'));
        expect(ajv.validate(whole, example), `${path} ${JSON.stringify(ajv.errors)}`).toBe(true);
      }
    }
  });

  test("uses JSON-RPC's own bodies for JSON-RPC, including errors", () => {
    const { responses } = document.paths["/v1/rpc"].post;
    expect(responses["400"].content["application/json"].schema).toEqual({ $ref: "#/components/schemas/RpcFailure" });
    expect(Object.keys(responses)).toEqual(["200", "204", "400", "default"]);
    expect(Object.keys(responses.default.content)).toEqual(["application/problem+json"]);
  });

  test("lists every path, from the table and fixed", () => {
    const wanted = [...fixedRoutes, ...Object.values(table).flatMap((row) => routeOf(row) ?? [])];
    for (const { verb, path } of wanted) expect(document.paths[path]).toHaveProperty(verb.toLowerCase());
    const events = (path: string) => document.paths[`/v1/sessions/{sessionId}/events${path}`].get;
    const types = (path: string) => Object.keys(events(path).responses["200"].content);
    expect([types("/page"), types("/stream")]).toEqual([["application/json"], ["text/event-stream"]]);
    expect(types("").toSorted()).toEqual(["application/json", "text/event-stream"]);
    expect([events(""), events("/page"), events("/stream")].map(({ deprecated }) => deprecated)).toEqual([
      true,
      undefined,
      undefined,
    ]);
    expect(document.paths["/healthz"].get.security).toEqual([]);
  });
});

const strings = { type: "array", items: { type: "string" } };
const content = {
  type: "object",
  minProperties: 1,
  propertyNames: { pattern: "^[a-z]+/[a-z+.-]+(; version=[\\d.]+)?(; charset=utf-8)?$" },
  additionalProperties: {
    type: "object",
    required: ["schema"],
    properties: { schema: { type: "object" }, example: true },
    additionalProperties: false,
  },
};

/** The part of OpenAPI 3.1 that the document uses, without additional properties. */
const openApiSubset = {
  type: "object",
  required: ["openapi", "info", "paths"],
  additionalProperties: false,
  properties: {
    openapi: { type: "string", pattern: "^3\\.1\\.\\d+$" },
    info: {
      type: "object",
      required: ["title", "version"],
      additionalProperties: false,
      properties: {
        title: { type: "string" },
        version: { type: "string" },
        description: { type: "string" },
        license: {
          type: "object",
          required: ["name"],
          additionalProperties: false,
          properties: { name: { type: "string" }, identifier: { type: "string" } },
        },
      },
    },
    servers: {
      type: "array",
      items: {
        type: "object",
        required: ["url"],
        additionalProperties: false,
        properties: { url: { type: "string" }, description: { type: "string" } },
      },
    },
    security: { type: "array", items: { type: "object", additionalProperties: strings } },
    paths: {
      type: "object",
      propertyNames: { pattern: "^/" },
      additionalProperties: {
        type: "object",
        propertyNames: { enum: ["get", "post", "put", "delete"] },
        additionalProperties: { $ref: "#/$defs/operation" },
      },
    },
    components: {
      type: "object",
      additionalProperties: false,
      properties: {
        schemas: {
          type: "object",
          propertyNames: { pattern: "^[a-zA-Z0-9._-]+$" },
          additionalProperties: { type: "object" },
        },
        securitySchemes: {
          type: "object",
          additionalProperties: {
            type: "object",
            required: ["type", "scheme"],
            additionalProperties: false,
            properties: { type: { const: "http" }, scheme: { const: "bearer" }, description: { type: "string" } },
          },
        },
      },
    },
  },
  $defs: {
    operation: {
      type: "object",
      required: ["responses", "operationId", "summary"],
      additionalProperties: false,
      patternProperties: { "^x-": true },
      properties: {
        operationId: { type: "string" },
        summary: { type: "string" },
        description: { type: "string" },
        deprecated: { const: true },
        tags: strings,
        security: { type: "array" },
        parameters: {
          type: "array",
          items: {
            type: "object",
            required: ["name", "in", "schema"],
            additionalProperties: false,
            properties: {
              name: { type: "string" },
              in: { enum: ["path", "query", "header"] },
              required: { type: "boolean" },
              description: { type: "string" },
              explode: { type: "boolean" },
              example: true,
              schema: { type: "object" },
            },
          },
        },
        requestBody: {
          type: "object",
          required: ["content"],
          additionalProperties: false,
          properties: { required: { type: "boolean" }, content },
        },
        responses: {
          type: "object",
          minProperties: 1,
          propertyNames: { pattern: "^(default|[1-5]\\d\\d)$" },
          additionalProperties: {
            type: "object",
            required: ["description"],
            additionalProperties: false,
            properties: { description: { type: "string" }, content },
          },
        },
      },
    },
  },
};
