import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type ErrorName, errorCatalogue, WireError } from "../../protocol/errors.ts";
import { STATUS_CODES } from "./node-http.ts";

/** Why a request is not served: an error of the catalogue, with its HTTP status and headers. */
export interface Refusal {
  readonly error: WireError;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** A refusal as it is sent. */
export interface WrittenRefusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RefusalOptions {
  /** Default: the status of the error in the catalogue. */
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

/** Returns a refusal for a status of HTTP, under the nearest name of the catalogue. */
export function httpRefusal(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Refusal {
  return refusal(new WireError(nameOfStatus(status), message), { status, headers });
}

/** Returns why the body is refused, judged by the head alone, before the peer is told to send it. */
export function refuseBody({ headers }: IncomingMessage, maxBodyBytes: number): Refusal | undefined {
  const coding = headers["transfer-encoding"];
  if (coding !== undefined && coding.trim().toLowerCase() !== "chunked") return unknownTransferCoding();
  const length = Number(headers["content-length"] ?? 0);
  return length > maxBodyBytes ? tooLarge(maxBodyBytes) : undefined;
}

/** Closes the socket, because the rest of the body is not read. */
export function tooLarge(maxBodyBytes: number): Refusal {
  return httpRefusal(413, `The body is longer than the limit of ${maxBodyBytes} bytes.`, { connection: "close" });
}

/** RFC 9112, section 6.1. The body cannot be read, so the socket is closed. */
export function unknownTransferCoding(): Refusal {
  return httpRefusal(501, 'The only transfer coding here is "chunked".', { connection: "close" });
}

/** Returns the refusal as `application/problem+json` (RFC 9457), with the catalogue's name and the error's details. */
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
 * Refuses a request outside the routes. If the socket is closed with the answer, the rest of the body is read and
 * discarded first, until nothing arrives for `closeTimeoutMs`: closing a socket with unread bytes resets it, and a peer
 * that is still writing would lose the answer.
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
  // The length completes the answer for the peer; ending the response would close the socket.
  response.write(body);
  let discarded = 0;
  request.on("data", ({ length }: Buffer) => {
    discarded += length;
    if (discarded > maxDiscardedBytes) response.end();
  });
  request.once("end", () => response.end());
  request.setTimeout(closeTimeoutMs, () => response.end());
}

/** Refuses a request whose peer waits for `100 Continue`, so that no body is on its way. */
export function refuseBeforeBody(response: ServerResponse, refused: Refusal): void {
  const { status, headers, body } = written(refused);
  response.writeHead(status, headers).end(body);
}

export interface DiscardLimits {
  readonly maxDiscardedBytes: number;
  readonly closeTimeoutMs: number;
}

/**
 * Refuses on a socket that node:http no longer owns (an upgrade, an unreadable head), and closes it when the peer closes
 * it. Until then received bytes are discarded, up to `maxDiscardedBytes` and for `closeTimeoutMs`, so that the peer can
 * read the answer.
 */
export function refuseSocket(socket: Socket, refused: Refusal, limits: DiscardLimits): void {
  const { status, headers, body } = written(refused);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    ...Object.entries({ ...headers, connection: "close" }).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
  // The HTTP parser would report an error for each chunk.
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

/** Returns the error of a JSON-RPC answer as one that can be thrown. */
export function wireErrorOf({ message, data }: { readonly message: string; readonly data?: unknown }): WireError {
  const { name, retryable: _derived, ...details } = data as WireError["data"];
  return new WireError(name, message, details);
}

/** Returns the path of a request's target, without its query. */
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
