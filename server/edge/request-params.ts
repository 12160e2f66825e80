import type { IncomingHttpHeaders } from "node:http";
import { WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { type JsonLimits, parseJson } from "../rpc/parse.ts";

export type Params = Record<string, unknown>;

interface PropertySchema {
  readonly type?: string;
}

/** The params of a row by their names. */
function propertiesOf({ params }: MethodRow): Readonly<Record<string, PropertySchema>> {
  return (params as { readonly properties?: Readonly<Record<string, PropertySchema>> }).properties ?? {};
}

/** A body's params. Throws `invalid_params` where it is no JSON object, and what {@link parseJson} throws. */
export function fromBody(body: Buffer | undefined, limits: JsonLimits): Params {
  if (body === undefined || body.length === 0) return {};
  const value = parseJson(body, limits);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Params;
  throw new WireError("invalid_params", "The body is not a JSON object.", {
    findings: [{ path: "", message: "must be an object" }],
  });
}

/** Query values are text: those of numbers, booleans and lists are read as such. Others go on as they are. */
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

/** The header `Idempotency-Key` is the param of that name, bare or in quotes. Throws `invalid_params` where there is none. */
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
 * The cursor in the header `Last-Event-ID`, as the events of a stream name it: the log's name, a colon, a number. It stands
 * in place of the query's: a client that connects again by itself repeats its URL. Throws `invalid_params`.
 */
export function withLastEventId(params: Params, headers: IncomingHttpHeaders): Params {
  const id = headers["last-event-id"];
  if (id === undefined || id === "") return params;
  const [, epoch, after] = /^([!-~]{1,64}):(\d{1,15})$/.exec(String(id)) ?? [];
  if (epoch !== undefined) return { ...params, epoch, after: Number(after) };
  throw new WireError("invalid_params", "Last-Event-ID is not the id of an event of this daemon's.", {
    findings: [{ path: "/after", message: "must be a number" }],
  });
}

/** A param may be given once: in the path, in the query, in a header or in the body. */
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
  // Each becomes a property of its own, `__proto__` too, which the params' check then refuses.
  return Object.fromEntries(entries);
}

function readValue(value: unknown, type: string | undefined): unknown {
  if (type === "array") return Array.isArray(value) ? value : String(value).split(",");
  if (typeof value !== "string") return value;
  if (type === "integer" && /^-?\d{1,15}$/.test(value)) return Number(value);
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}
