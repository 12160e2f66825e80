import { errorCatalogue } from "./errors.ts";
import { exampleOf } from "./examples.ts";
import { errorsOf } from "./method-errors.ts";
import type { MethodRow } from "./method-row.ts";
import { type MethodName, methods } from "./methods.ts";
import { notifications } from "./notifications.ts";
import { PROTOCOL_VERSION, WEBSOCKET_PATH } from "./wire.ts";

/**
 * The protocol as an OpenRPC 1.3 document. `notifications` and `errors`, which OpenRPC does not define, have `x-`
 * keys.
 */
export function openRpcDocument(version: string): Record<string, unknown> {
  return {
    openrpc: "1.3.2",
    info: {
      title: "pi-rpcd",
      version,
      description: `JSON-RPC 2.0 over WebSocket (${WEBSOCKET_PATH}), HTTP and a Unix socket. Protocol version ${PROTOCOL_VERSION}.`,
    },
    methods: (Object.keys(methods) as MethodName[]).map((name) => method(name, methods[name])),
    "x-notifications": Object.entries(notifications).map(([name, row]) => ({
      name,
      summary: row.summary,
      "x-since": row.since,
      paramStructure: "by-name",
      params: paramsOf(row.params),
    })),
    "x-errors": Object.entries(errorCatalogue).map(([name, { code, httpStatus, retryable, meaning }]) => ({
      name,
      code,
      httpStatus,
      retryable,
      meaning,
    })),
  };
}

/** The properties of an object's schema as params by name. */
function paramsOf(schema: object): readonly Record<string, unknown>[] {
  const { properties, required = [] } = schema as {
    readonly properties: Readonly<Record<string, unknown>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, property]) => ({
    name,
    required: required.includes(name),
    schema: property,
  }));
}

function method(name: MethodName, row: MethodRow): Record<string, unknown> {
  const example = exampleOf(name);
  return {
    name,
    summary: row.summary,
    paramStructure: "by-name",
    params: paramsOf(row.params),
    result: { name: "result", schema: row.result },
    errors: errorsOf(row).map((error) => ({
      code: errorCatalogue[error].code,
      message: errorCatalogue[error].meaning,
      data: { name: error },
    })),
    examples: [
      {
        name,
        params: Object.entries(example.params).map(([parameter, value]) => ({ name: parameter, value })),
        result: { name: "result", value: example.result },
      },
    ],
    "x-scope": row.scope,
    "x-capability": row.capability,
    ...(row.asleep === undefined ? {} : { "x-asleep": row.asleep }),
    "x-since": row.since,
  };
}
