import type { IncomingHttpHeaders } from "node:http";
import { WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { isRecord } from "../../protocol/objects.ts";
import { type JsonLimits, parseJson } from "../rpc/parse.ts";

export type Params = Record<string, unknown>;

interface PropertySchema {
  readonly type?: string;
}

/** Returns the schemas of a row's params by name. */
function propertiesOf({ params }: MethodRow): Readonly<Record<string, PropertySchema>> {
  return (params as { readonly properties?: Readonly<Record<string, PropertySchema>> }).properties ?? {};
}

/** Returns a body's params. Throws `invalid_params` if it is not a JSON object, and the errors of {@link parseJson}. */
export function fromBody(body: Buffer | undefined, limits: JsonLimits): Params {
  if (body === undefined || body.length === 0) return {};
  const value = parseJson(body, limits);
  if (isRecord(value)) return value;
  throw new WireError("invalid_params", "The body is not a JSON object.", {
    findings: [{ path: "", message: "must be an object" }],
  });
}

/** Returns a query's params. Values are text: numbers, booleans and lists are converted as the row's schema says. */
export function fromQuery(query: Params, row: MethodRow): Params {
  const properties = propertiesOf(row);
  const given = Object.entries(query);
  if (given.length === 0) return query;
  return Object.fromEntries(
    given.map(([name, value]) => {
      const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
      return [name, readValue(value, schema?.type)];
    }),
  );
}

/** Returns the header `Idempotency-Key` as a param, without its quotes. Throws `invalid_params` if the row has no such param. */
export function fromHeaders(headers: IncomingHttpHeaders, method: string, row: MethodRow): Params {
  const key = headers["idempotency-key"];
  if (key === undefined) return {};
  if (!Object.hasOwn(propertiesOf(row), "idempotencyKey")) {
    const takesId = Object.hasOwn(propertiesOf(row), "deliveryId") ? " A deliveryId does that for it." : "";
    throw new WireError("invalid_params", `${method} takes no Idempotency-Key.${takesId}`, {
      findings: [{ path: "/idempotencyKey", message: "is not a known parameter" }],
    });
  }
  return { idempotencyKey: String(key).replace(/^"(.*)"$/, "$1") };
}

/**
 * Adds the cursor in the header `Last-Event-ID`: the log's name, a colon, a number. It replaces the query's cursor,
 * because a client that reconnects by itself repeats its URL. Throws `invalid_params` for any other value.
 */
export function withLastEventId(params: Params, headers: IncomingHttpHeaders): Params {
  const id = headers["last-event-id"];
  if (id === undefined || id === "") return params;
  const [, epoch, after = ""] = /^([!-~]{1,64}):(\d+)$/.exec(String(id)) ?? [];
  if (epoch !== undefined && isExact(after)) return { ...params, epoch, after: Number(after) };
  throw new WireError("invalid_params", "Last-Event-ID is not the id of an event of this daemon's.", {
    findings: [{ path: "/after", message: "must be a number" }],
  });
}

/** Merges the params of path, query, headers and body. Throws `invalid_params` if one is given twice. */
export function merged(...parts: readonly Params[]): Params {
  const given = parts.filter((part) => Object.keys(part).length > 0);
  const [only] = given;
  if (given.length < 2) return only ?? {};
  const entries = given.flatMap((part) => Object.entries(part));
  const names = new Set<string>();
  for (const [name] of entries) {
    if (names.has(name)) {
      throw new WireError("invalid_params", `"${name.slice(0, 200)}" is given twice.`, {
        findings: [{ path: `/${name.slice(0, 200)}`, message: "is given twice" }],
      });
    }
    names.add(name);
  }
  // `fromEntries` makes `__proto__` an own property too, which the schema then refuses.
  return Object.fromEntries(entries);
}

function readValue(value: unknown, type: string | undefined): unknown {
  if (type === "array") return Array.isArray(value) ? value : String(value).split(",");
  if (typeof value !== "string") return value;
  if (type === "integer" && isExact(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}

/** Whether a text is an integer that a number can hold: one of a log can be a time in microseconds. */
function isExact(text: string): boolean {
  return /^-?\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text));
}
