import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { errorCatalogue, type ErrorName, WireError } from "../../protocol/errors.ts";

/** An HTTP answer that says why a request was not served. */
export interface Refusal {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * The problem as `application/problem+json` (RFC 9457), with the catalogue's name. `status` is the name's own unless
 * HTTP has a more exact one.
 */
export function problem(error: WireError, status: number = error.httpStatus, headers: Readonly<Record<string, string>> = {}): Refusal {
  const { name, ...details } = error.data;
  const body = { type: "about:blank", title: STATUS_CODES[status] ?? name, status, detail: error.message, name, ...details };
  const challenge: Record<string, string> = status === 401 ? { "www-authenticate": "Bearer" } : {};
  return { status, contentType: "application/problem+json", body: JSON.stringify(body), headers: { ...challenge, ...headers } };
}

/** A problem of HTTP itself, under the nearest name of the catalogue. */
export function httpProblem(status: number, name: ErrorName, message: string, headers?: Readonly<Record<string, string>>): Refusal {
  return problem(new WireError(name, message), status, headers);
}

/** The name for a status that fastify has given. */
export function nameOfStatus(status: number): ErrorName {
  if (status === 413) return "too_large";
  const names = Object.keys(errorCatalogue) as ErrorName[];
  if (status >= 500) return "internal_error";
  return names.find((name) => errorCatalogue[name].httpStatus === status) ?? "invalid_request";
}

/** Answers a request to upgrade that is not granted, and closes its socket. */
export function refuseUpgrade(socket: Duplex, { status, contentType, body, headers }: Refusal): void {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    `content-type: ${contentType}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.once("finish", () => socket.destroy());
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}
