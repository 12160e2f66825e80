import { type ErrorName, errorCatalogue } from "./errors.ts";
import type { MethodRow } from "./method-row.ts";
import { methods } from "./methods.ts";
import { notifications } from "./notifications.ts";
import { PROTOCOL_VERSION, WEBSOCKET_PATH } from "./wire.ts";

/** Errors that every method can give, and that the rows therefore do not list. */
const commonErrors = ["invalid_params", "internal_error", "overloaded"] as const satisfies readonly ErrorName[];

/** The protocol as an OpenRPC 1.3 document. `notifications` and `errors` beyond OpenRPC stand under `x-` keys. */
export function openRpcDocument(version: string): Record<string, unknown> {
  return {
    openrpc: "1.3.2",
    info: {
      title: "pi-rpcd",
      version,
      description: `JSON-RPC 2.0 over WebSocket (${WEBSOCKET_PATH}), HTTP and a Unix socket. Protocol version ${PROTOCOL_VERSION}.`,
    },
    methods: Object.entries(methods).map(([name, row]) => method(name, row)),
    "x-notifications": Object.entries(notifications).map(([name, row]) => ({
      name,
      summary: row.summary,
      "x-since": row.since,
      params: [{ name: "params", schema: row.params }],
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

function method(name: string, row: MethodRow): Record<string, unknown> {
  const schema = row.params as unknown as { properties: Record<string, unknown>; required?: readonly string[] };
  return {
    name,
    summary: row.summary,
    paramStructure: "by-name",
    params: Object.entries(schema.properties).map(([parameter, parameterSchema]) => ({
      name: parameter,
      required: schema.required?.includes(parameter) ?? false,
      schema: parameterSchema,
    })),
    result: { name: "result", schema: row.result },
    errors: [...commonErrors, ...row.errors].map((error) => ({
      code: errorCatalogue[error].code,
      message: errorCatalogue[error].meaning,
      data: { name: error },
    })),
    "x-scope": row.scope,
    "x-capability": row.capability,
    "x-since": row.since,
  };
}
