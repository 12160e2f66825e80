import type { IncomingMessage } from "node:http";
import { WireError } from "../../../protocol/errors.ts";
import { RateWindow } from "../../lib/rate-window.ts";
import type { Grant } from "../../rpc/grant.ts";
import { admit, bearer, isOneHost, isUpgrade, subprotocolToken } from "../admission.ts";
import { type Refusal, refusal } from "../refusal.ts";

export interface WebAdmissionOptions {
  readonly tokens: { find(token: string): Grant | undefined };
  /** Wrong tokens and codes per minute that get an answer. */
  readonly maxRefusedTokensPerMinute: number;
}

const minuteMs = 60_000;

/**
 * Decides by the head of a request whether to admit it to the web console's listener. A page of another origin is refused
 * before anything is counted, so that it cannot keep the user's own browser out.
 */
export class WebAdmission {
  readonly #tokens: WebAdmissionOptions["tokens"];
  readonly #refused: RateWindow;
  #hosts: readonly string[] = [];
  #origin = "";
  #port = 0;

  constructor({ tokens, maxRefusedTokensPerMinute }: WebAdmissionOptions) {
    this.#tokens = tokens;
    this.#refused = new RateWindow({ max: maxRefusedTokensPerMinute, windowMs: minuteMs });
  }

  /** Sets the port. Until then all requests are refused. */
  listensOn(port: number): void {
    this.#port = port;
    // A browser leaves out the port 80.
    this.#hosts = [`127.0.0.1:${port}`, ...(port === 80 ? ["127.0.0.1"] : [])];
    this.#origin = `http://${this.#hosts.at(-1)}`;
  }

  get port(): number {
    return this.#port;
  }

  /** The origin of the page. */
  get origin(): string {
    return this.#origin;
  }

  /** Returns why the request is refused, or `undefined` to admit it. `drop`: without an answer. */
  refuse(request: IncomingMessage): Refusal | "drop" | undefined {
    if (!this.#isOwn(request)) {
      const why = "another program may have this port under the other names of this machine";
      return this.#forbidden(`The page is at ${this.#origin}/ only: ${why}`);
    }
    const { origin } = request.headers;
    const isPlain = (request.method === "GET" || request.method === "HEAD") && !isUpgrade(request);
    // A browser names the origin with everything but plain reads of the same origin.
    if (origin === undefined ? !isPlain : origin !== this.#origin)
      return this.#forbidden("Only the page itself may do this: the request has no Origin, or another one");
    if (isPlain || request.url === exchangePath) return undefined;
    const token = isUpgrade(request) ? subprotocolToken(request) : bearer(request);
    const grant = token === undefined ? undefined : this.#tokens.find(token);
    if (grant === undefined) return this.refuseSecret("The token is missing, wrong, or has ended");
    admit(request, grant);
    return undefined;
  }

  /** The refusal of a wrong token or code, which is counted. A correct one is admitted at any rate. */
  refuseSecret(why: string): Refusal | "drop" {
    if (!this.#refused.add(performance.now())) return "drop";
    return refusal(new WireError("unauthorized", `${why}. Run "pi-rpcd web" to open the page again.`));
  }

  /** The other names of the loopback interface may lead to another user's program. */
  #isOwn({ headers, rawHeaders, url = "" }: IncomingMessage): boolean {
    if (!isOneHost(rawHeaders) || !this.#hosts.includes(headers.host ?? "")) return false;
    // A target in absolute form names a host that overrides the header (RFC 9112, section 3.2.2).
    return url.startsWith("/");
  }

  #forbidden(why: string): Refusal {
    return refusal(new WireError("forbidden", `${why}.`));
  }
}

export const exchangePath = "/exchange";
