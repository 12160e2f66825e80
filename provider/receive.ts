import { timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Body } from "./body.ts";
import type { StrictRules, Violation } from "./dialect.ts";
import { isObject, isWellFormed, parsedOrText } from "./json.ts";
import { redactedHeaders, redactedPath } from "./log.ts";
import type { Received } from "./request-log.ts";
import type { Route } from "./route.ts";
import type { MessageThreads } from "./threads.ts";

export interface Arrival {
  readonly request: IncomingMessage;
  readonly route: Route;
  readonly body: Body;
  readonly receivedAt: number;
}

/** The requirements on requests. */
export interface Admission {
  /** Undefined: everything is allowed. */
  readonly rules: StrictRules | undefined;
  readonly apiKey: string | undefined;
  readonly maxBodyBytes: number;
  /** The conversations that requests can continue. */
  readonly threads: MessageThreads;
}

/** A lone surrogate is only possible as an escape. */
const surrogateEscape = /\\u[dD][89a-fA-F]/;

/** A request for the log, and why it must be refused. */
export function receive({ request, route, body, receivedAt }: Arrival, admission: Admission): Received {
  const parsed = body.kind === "whole" ? parsedOrText(body.text) : undefined;
  const given = isObject(parsed) ? parsed : {};
  const whole = route.dialect.api === "anthropic" ? admission.threads.complete(given) : given;
  const content = whole ?? given;
  return {
    request: {
      api: route.dialect.api,
      path: redactedPath(request.url ?? ""),
      receivedAt,
      headers: redactedHeaders(request.headers),
      body: content,
      bodyBytes: body.bytes,
      bodySha256: body.kind === "whole" ? body.sha256 : undefined,
      ...route.dialect.read(content, route.target),
    },
    violations: violations(),
  };

  function violations(): readonly Violation[] {
    if (body.kind === "cutOff") return [];
    if (!isAuthorised(request.headers, admission.apiKey))
      return [{ message: "Incorrect API key provided", status: 401 }];
    if (body.kind === "tooLarge") {
      const message = `Request exceeds the maximum size: ${body.bytes} bytes > ${admission.maxBodyBytes}`;
      return [{ message, status: 413 }];
    }
    if (!isObject(parsed)) return [{ message: "The request body is not a JSON object", status: 400 }];
    if (whole === undefined)
      return [{ message: "thread: The message was not found", status: 404, code: "thread_not_found" }];
    if (admission.rules === undefined) return [];
    if (body.kind === "whole" && surrogateEscape.test(body.text) && !isWellFormed(parsed)) {
      return [{ message: "The request body is not valid JSON: no low surrogate in string", status: 400 }];
    }
    return route.dialect.violations(content, route.target, admission.rules);
  }
}

function isAuthorised(headers: IncomingHttpHeaders, apiKey: string | undefined): boolean {
  if (apiKey === undefined) return true;
  const shown = [headers.authorization?.replace(/^Bearer /i, ""), headers["x-api-key"], headers["x-goog-api-key"]];
  return shown.some((key) => typeof key === "string" && isEqual(key, apiKey));
}

function isEqual(shown: string, expected: string): boolean {
  const [left, right] = [Buffer.from(shown), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}
