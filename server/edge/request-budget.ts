import type { IncomingMessage, ServerResponse } from "node:http";
import { WireError } from "../../protocol/errors.ts";
import { type Refusal, refusal } from "./refusal.ts";

export interface RequestBudgetOptions {
  readonly maxHttpRequests: number;
  readonly maxHttpBytes: number;
  readonly maxBodyBytes: number;
}

/** HTTP requests of all transports that are not answered yet, and their bodies: many sockets have many small bounds. */
export class RequestBudget {
  readonly #options: RequestBudgetOptions;
  #requests = 0;
  #bytes = 0;

  constructor(options: RequestBudgetOptions) {
    this.#options = options;
  }

  /** Takes a place until the answer has been given or nobody waits for it; or says why there is none. */
  take(request: IncomingMessage, response: ServerResponse): Refusal | undefined {
    const { maxHttpRequests, maxHttpBytes } = this.#options;
    if (this.#requests >= maxHttpRequests)
      return full(`${maxHttpRequests} HTTP requests wait for their answer already.`);
    let bytes = this.#announced(request);
    if (this.#requests > 0 && this.#bytes + bytes > maxHttpBytes) {
      return full(`The HTTP requests that wait for their answer are ${maxHttpBytes} bytes long already.`);
    }
    this.#requests += 1;
    this.#bytes += bytes;
    if (bytes > 0) {
      const before = request.socket.bytesRead;
      // What came is known then, where its length was not.
      request.on("end", () => {
        const came = Math.min(bytes, Math.max(0, request.socket.bytesRead - before));
        this.#bytes -= bytes - came;
        bytes = came;
      });
    }
    response.on("close", () => {
      this.#requests -= 1;
      this.#bytes -= bytes;
      bytes = 0;
    });
    return undefined;
  }

  /** Larger ones are refused unread, and one in chunks may become as long as any. */
  #announced({ headers }: IncomingMessage): number {
    const { maxBodyBytes } = this.#options;
    if (headers["transfer-encoding"] !== undefined) return maxBodyBytes;
    return Math.min(Number(headers["content-length"] ?? 0) || 0, maxBodyBytes);
  }
}

function full(message: string): Refusal {
  return refusal(new WireError("overloaded", message, { retryAfterMs: 1_000 }));
}
