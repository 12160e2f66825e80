import type { Duplex } from "node:stream";
import { type ErrorName, errorCatalogue, WireError } from "../../protocol/errors.ts";
import { STATUS_CODES } from "./node-http.ts";

/** Why a request is not served: an error of the catalogue, and how HTTP says it. */
export interface Refusal {
  readonly error: WireError;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** A refusal as it goes over the wire. */
export interface WrittenRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RefusalOptions {
  /** Default: the catalogue's own; HTTP has a more exact one for some. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export function refusal(error: WireError, { status = error.httpStatus, headers = {} }: RefusalOptions = {}): Refusal {
  const { retryAfterMs } = error.data;
  return {
    error,
    status,
    headers: {
      ...(status === 401 && { "www-authenticate": "Bearer" }),
      ...(typeof retryAfterMs === "number" && { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) }),
      ...headers,
    },
  };
}

/** A refusal of HTTP's own, under the nearest name of the catalogue. */
export function httpRefusal(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Refusal {
  return refusal(new WireError(nameOfStatus(status), message), { status, headers });
}

/** The refusal as `application/problem+json` (RFC 9457), with the catalogue's name and what the error has to add. */
export function written({ error, status, headers }: Refusal): WrittenRefusal {
  const { name, ...details } = error.data;
  const title = STATUS_CODES[status] ?? name;
  const body = JSON.stringify({ ...details, type: "about:blank", title, status, detail: error.message, name });
  const length = String(Buffer.byteLength(body));
  return {
    status,
    headers: { ...headers, "content-type": "application/problem+json", "content-length": length },
    body,
  };
}

/** Refuses on a socket that HTTP has let go of (an upgrade, a head that could not be read), and ends the socket. */
export function refuseSocket(socket: Duplex, refused: Refusal): void {
  const { status, headers, body } = written(refused);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "connection: close",
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`, () => socket.destroy());
}

/** The path of a request's target, without its query. */
export function pathOf(url: string | undefined): string {
  return (url ?? "").split("?", 1)[0] ?? "";
}

function nameOfStatus(status: number): ErrorName {
  if (status >= 500) return "internal_error";
  if (status === 404 || status === 405) return "method_not_found";
  if (status === 431) return "too_large";
  const names = Object.keys(errorCatalogue) as ErrorName[];
  return (
    names.find((name) => name !== "parse_error" && errorCatalogue[name].httpStatus === status) ?? "invalid_request"
  );
}
