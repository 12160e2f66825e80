import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
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

/** RFC 9112, section 6.1. The body cannot be read, so its socket ends. */
export function unknownTransferCoding(): Refusal {
  return httpRefusal(501, 'The only transfer coding here is "chunked".', { connection: "close" });
}

/** The refusal as `application/problem+json` (RFC 9457), with the catalogue's name and what the error has to add. */
export function written({ error, status, headers }: Refusal): WrittenRefusal {
  const { name, ...details } = error.data;
  const title = STATUS_CODES[status] ?? name;
  const body = JSON.stringify({ ...details, type: "about:blank", title, status, detail: error.message, name });
  const length = String(Buffer.byteLength(body));
  return {
    status,
    headers: {
      ...headers,
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "content-length": length,
    },
    body,
  };
}

/**
 * Refuses a request outside of the routes. Where its socket ends with the answer, what the peer still sends of the body is read
 * first and thrown away, until nothing comes for `closeTimeoutMs`: a socket that is closed with unread bytes takes the answer from a peer that is still writing.
 */
export function refuseRequest(response: ServerResponse, refused: Refusal, limits: DiscardLimits): void {
  const { maxDiscardedBytes, closeTimeoutMs } = limits;
  const { req: request } = response;
  const { status, headers, body } = written(refused);
  const isLast = headers["connection"] === "close" || response.getHeader("connection") === "close";
  response.writeHead(status, headers);
  if (!isLast || request.complete) {
    response.end(body);
    return;
  }
  // With its length the answer is complete for the peer; the end of the response would end the socket.
  response.write(body);
  let discarded = 0;
  request.on("data", ({ length }: Buffer) => {
    discarded += length;
    if (discarded > maxDiscardedBytes) response.end();
  });
  request.once("end", () => response.end());
  request.setTimeout(closeTimeoutMs, () => response.end());
}

/** The same where the peer sends a body only when it is told to: it has sent none. */
export function refuseBeforeBody(response: ServerResponse, refused: Refusal): void {
  const { status, headers, body } = written(refused);
  response.writeHead(status, headers).end(body);
}

export interface DiscardLimits {
  readonly maxDiscardedBytes: number;
  readonly closeTimeoutMs: number;
}

/**
 * Refuses on a socket that HTTP has let go of (an upgrade, a head that could not be read), and ends it as soon as the peer has
 * ended it too. Until then what comes is thrown away, up to a bound and for `closeTimeoutMs`, for the same reason.
 */
export function refuseSocket(socket: Socket, refused: Refusal, limits: DiscardLimits): void {
  const { status, headers, body } = written(refused);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    ...Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
  // HTTP's parser, which would tell of each chunk that it cannot read it.
  socket.removeAllListeners("data");
  const most = socket.bytesRead + limits.maxDiscardedBytes;
  socket.on("data", () => {
    if (socket.bytesRead > most) socket.destroy();
  });
  socket.once("end", () => socket.destroySoon());
  const cut = setTimeout(() => socket.destroy(), limits.closeTimeoutMs).unref();
  socket.once("close", () => clearTimeout(cut));
  socket.resume();
}

/** The path of a request's target, without its query. */
export function pathOf(url: string | undefined): string {
  return (url ?? "").split("?", 1)[0] ?? "";
}

function nameOfStatus(status: number): ErrorName {
  if (status === 501) return "invalid_request";
  if (status >= 500) return "internal_error";
  if (status === 404 || status === 405) return "method_not_found";
  if (status === 431) return "too_large";
  const names = Object.keys(errorCatalogue) as ErrorName[];
  return (
    names.find((name) => name !== "parse_error" && errorCatalogue[name].httpStatus === status) ?? "invalid_request"
  );
}
