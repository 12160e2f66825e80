import type { IncomingMessage, ServerResponse } from "node:http";
import { Shares } from "../rpc/shares.ts";
import { grantOf } from "./admission.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { whenGone } from "./when-gone.ts";

export interface RequestBudgetOptions {
  readonly maxHttpRequests: number;
  readonly maxHttpRequestsPerToken: number;
  readonly maxHttpBytes: number;
  readonly maxHttpBytesPerToken: number;
  readonly namedTokensPercent: number;
  readonly maxBodyBytes: number;
}

/** HTTP requests of all transports that are not answered yet, and their bodies: many sockets have many small bounds. */
export class RequestBudget {
  readonly #maxBodyBytes: number;
  readonly #requests: Shares;
  readonly #bytes: Shares;

  constructor(options: RequestBudgetOptions) {
    const { namedTokensPercent } = options;
    this.#maxBodyBytes = options.maxBodyBytes;
    this.#requests = new Shares({
      what: "HTTP requests that wait for their answer",
      max: options.maxHttpRequests,
      maxPerToken: options.maxHttpRequestsPerToken,
      namedTokensPercent,
    });
    this.#bytes = new Shares({
      what: "bytes of HTTP requests that wait for their answer",
      max: options.maxHttpBytes,
      maxPerToken: options.maxHttpBytesPerToken,
      namedTokensPercent,
    });
  }

  /** Takes a place until the answer has been given or nobody waits for it; or says why there is none. */
  take(request: IncomingMessage, response: ServerResponse): Refusal | undefined {
    const grant = grantOf(request);
    const bytes = this.#announced(request);
    const full = this.#requests.refusal(grant, 1) ?? (bytes === 0 ? undefined : this.#bytes.refusal(grant, bytes));
    if (full !== undefined) return refusal(full);
    this.#requests.add(grant, 1);
    if (bytes > 0) this.#count(request, response, bytes);
    whenGone(request, response, () => this.#requests.add(grant, -1));
    return undefined;
  }

  #count(request: IncomingMessage, response: ServerResponse, announced: number): void {
    const grant = grantOf(request);
    let bytes = announced;
    this.#bytes.add(grant, bytes);
    const before = request.socket.bytesRead;
    // What came is known then, where its length was not.
    request.on("end", () => {
      const came = Math.min(bytes, Math.max(0, request.socket.bytesRead - before));
      this.#bytes.add(grant, came - bytes);
      bytes = came;
    });
    whenGone(request, response, () => {
      this.#bytes.add(grant, -bytes);
      bytes = 0;
    });
  }

  /** Larger ones are refused unread, and one in chunks may become as long as any. */
  #announced({ headers }: IncomingMessage): number {
    if (headers["transfer-encoding"] !== undefined) return this.#maxBodyBytes;
    return Math.min(Number(headers["content-length"] ?? 0) || 0, this.#maxBodyBytes);
  }
}
