import { TOKEN_SUBPROTOCOL_PREFIX, WEBSOCKET_SUBPROTOCOL } from "../protocol/wire.ts";
import { webSocketUrl } from "./address.ts";
import { ConnectionFailedError } from "./local-errors.ts";
import { closeTimeoutMs, type OpenSocket, type Socket, type SocketEnd } from "./socket.ts";

export interface BrowserSocketOptions {
  /** The daemon's base URL. */
  readonly url: string;
  /** The path of its WebSocket endpoint. Default: that of the protocol. */
  readonly path?: string | undefined;
  readonly token: string;
  /** Cancels the attempt to open; does not affect an open socket. */
  readonly signal: AbortSignal;
}

/** A socket over the platform's WebSocket. The token is sent as a subprotocol because headers cannot be set. */
export function browserSocket({ url, path, token, signal }: BrowserSocketOptions): OpenSocket {
  return (listener) =>
    new Promise<Socket>((resolve, reject) => {
      signal.throwIfAborted();
      const endpoint = webSocketUrl(url, path);
      const ws = new WebSocket(endpoint, [WEBSOCKET_SUBPROTOCOL, TOKEN_SUBPROTOCOL_PREFIX + token]);
      let state: "opening" | "open" | "ended" = "opening";
      const abort = (): void => {
        state = "ended";
        reject(signal.reason);
        ws.close();
      };
      const end = (how: SocketEnd): void => {
        signal.removeEventListener("abort", abort);
        if (state === "open") listener.onEnd(how);
        if (state === "opening") reject(new ConnectionFailedError(unopened(endpoint)));
        state = "ended";
      };
      signal.addEventListener("abort", abort, { once: true });
      ws.addEventListener("open", () => {
        if (state !== "opening") return;
        state = "open";
        signal.removeEventListener("abort", abort);
        resolve(socketOf(ws, end));
      });
      ws.addEventListener("message", ({ data }: { readonly data: unknown }) => {
        if (state === "ended") return;
        if (typeof data === "string") listener.onText(data);
        else listener.onBinary(data instanceof ArrayBuffer ? data.byteLength : ((data as { size?: number }).size ?? 0));
      });
      ws.addEventListener("close", ({ code, reason }) => end({ code, reason }));
      // `close` follows `error` with the same information, but Node's WebSocket needs a listener of `error`.
      ws.addEventListener("error", () => {});
    });
}

/** Browsers do not tell a page the HTTP status or the cause. */
function unopened(endpoint: string): string {
  return (
    `The WebSocket to ${endpoint} did not open. Check that the daemon runs (\`pi-rpcd status\`), that the token is right, ` +
    "and that the daemon allows this page's origin."
  );
}

function socketOf(ws: WebSocket, end: (how: SocketEnd) => void): Socket {
  return {
    send: (text) => {
      if (ws.readyState === WebSocket.OPEN) ws.send(text);
    },
    close: (code, reason) => {
      AbortSignal.timeout(closeTimeoutMs).addEventListener("abort", () => end({ code: 1006, reason: "" }), {
        once: true,
      });
      // Scripts in browsers may only send 1000 and 3000 to 4999.
      ws.close(code === 1000 ? 1000 : 3000 + (code % 1000), reason);
    },
  };
}
