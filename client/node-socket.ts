import { connect as connectSocket, type Socket as NetSocket } from "node:net";
import { WebSocket } from "ws";
import { WEBSOCKET_PATH } from "../protocol/wire.ts";
import { type Address, nameOf, webSocketUrl } from "./address.ts";
import { refusal } from "./daemon-error.ts";
import { closeTimeoutMs, type OpenSocket, type Socket, type SocketEnd } from "./socket.ts";

export interface NodeSocketOptions {
  readonly address: Address;
  readonly token: string | undefined;
  /** Cancels the attempt to open; does not affect an open socket. */
  readonly signal: AbortSignal;
  readonly maxFrameBytes: number;
}

export type { WebSocket } from "ws";

const maxRefusalBytes = 16_384;

/** The listener of a socket's unchanged frames. `onEnd` is called once, and only if the socket had opened. */
export interface FrameListener {
  onMessage(data: Buffer, isBinary: boolean): void;
  onEnd(end: SocketEnd): void;
}

/** A socket of `ws`, over a Unix socket or TCP. A refused upgrade rejects with the error that `refusal` returns. */
export function nodeSocket(options: NodeSocketOptions): OpenSocket {
  return async (listener) =>
    socketOf(
      await openWebSocket(options, {
        onMessage: (data, isBinary) => {
          if (isBinary) listener.onBinary(data.byteLength);
          else listener.onText(data.toString());
        },
        onEnd: (end) => listener.onEnd(end),
      }),
    );
}

/** Opens the `WebSocket` itself, for a caller that forwards bytes. */
export function openWebSocket(
  { address, token, signal, maxFrameBytes }: NodeSocketOptions,
  listener: FrameListener,
): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const ws = new WebSocket(address.kind === "unix" ? `ws://localhost${WEBSOCKET_PATH}` : webSocketUrl(address.url), {
      perMessageDeflate: false,
      maxPayload: maxFrameBytes,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      ...(address.kind === "unix" && { createConnection: () => connectUnix(address.socketPath) }),
    });
    let opened = false;
    let lastError: Error | undefined;
    const abort = (): void => {
      reject(signal.reason);
      ws.terminate();
    };
    signal.addEventListener("abort", abort, { once: true });

    ws.on("open", () => {
      opened = true;
      signal.removeEventListener("abort", abort);
      resolve(ws);
    });
    ws.on("message", (data: Buffer, isBinary) => listener.onMessage(data, isBinary));
    ws.on("unexpected-response", (_request, response) => {
      let body = "";
      const finish = (): void => {
        reject(refusal({ where: nameOf(address), sentToken: token !== undefined, status: response.statusCode, body }));
        ws.terminate();
      };
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
        if (body.length > maxRefusalBytes) finish();
      });
      response.on("end", finish);
      response.on("error", finish);
    });
    ws.on("error", (error) => {
      lastError = error;
    });
    ws.on("close", (code, reason) => {
      signal.removeEventListener("abort", abort);
      if (opened) listener.onEnd({ code, reason: reason.toString(), ...(lastError && { error: lastError }) });
      else reject(lastError ?? new Error(`The socket closed before it was open (code ${code}).`));
    });
  });
}

/** A `ws+unix:` URL does not work: ws cuts its path at the first colon and does not decode percent escapes. */
function connectUnix(path: string): NetSocket {
  return connectSocket({ path });
}

function socketOf(ws: WebSocket): Socket {
  return {
    send: (text) => ws.send(text, ignoreError),
    close: (code, reason) => {
      AbortSignal.timeout(closeTimeoutMs).addEventListener("abort", () => ws.terminate(), { once: true });
      ws.close(code, reason);
    },
  };
}

/** The socket's end follows a failed write and is reported to callers. */
function ignoreError(): void {}
