import type { IncomingHttpHeaders } from "node:http";
import type { ApiName, Violation } from "./dialect.ts";
import type { JsonObject } from "./json.ts";
import { countText, type RequestMessage, type TextScope } from "./messages.ts";
import type { Usage } from "./reply.ts";

/** OpenAI Responses does not accept a lower limit for an answer, and pi raises lower ones to it. */
const leastTokens: Readonly<Partial<Record<ApiName, number>>> = { "openai-responses": 16 };

/**
 * - `answered`: the system has accepted the complete answer with status 200.
 * - `refused`: the system has accepted the complete response with an error status.
 * - `reset`: the provider reset the connection. `broken`: it truncated the answer or sent an error event in it.
 * - `closed_by_client`: the client closed the connection first, before or after the headers.
 * - `hung`: the response was incomplete when the provider was closed.
 */
export type Outcome = "answered" | "refused" | "reset" | "broken" | "hung" | "closed_by_client";

/** A model request as received. */
export interface ReceivedRequest {
  /** Ordinal of the request, from 1, in the order in which their bodies were complete. */
  readonly n: number;
  readonly api: ApiName;
  /** Path and query; an API key in the query is redacted. */
  readonly path: string;
  /** When the request's headers arrived. */
  readonly receivedAt: number;
  /** Names in lower case; the values of credentials are `[redacted]`. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The parsed body; empty if it was not a JSON object, too large or incomplete. If it continues a thread, with the
   * thread's earlier messages.
   */
  readonly body: JsonObject;
  readonly bodyBytes: number;
  /** The hash of the body, in hexadecimal, if the body is complete. */
  readonly bodySha256: string | undefined;
  readonly model: string | undefined;
  readonly stream: boolean;
  /** The request's own limit for the answer. */
  readonly maxTokens: number | undefined;
  /** The system prompt (as the first message, for every API) and the conversation. */
  readonly messages: readonly RequestMessage[];
  readonly toolNames: readonly string[];
}

/** One model request and its outcome. Times are milliseconds since the epoch. */
export interface LogEntry extends ReceivedRequest {
  /** Why it was refused, in the words of a real provider (the response has the first), or what failed in the script. */
  readonly violations: readonly string[];
  /**
   * Whether it asks for the minimum of tokens (one, for OpenAI Responses 16), as pi does to keep a prompt cache warm.
   */
  readonly isWarming: boolean;
  /** The usage in an answer with status 200; undefined before it begins. */
  readonly usage: Usage | undefined;
  readonly status: number | undefined;
  readonly headersSentAt: number | undefined;
  readonly clientClosedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** Undefined until the request has ended. */
  readonly outcome: Outcome | undefined;
  /** Resolves with true when the system has accepted status and headers, with false if the request ended without. */
  readonly headersSent: Promise<boolean>;
  /** Resolves when the request has ended, with its outcome. */
  readonly ended: Promise<Outcome>;

  /** Whether the messages or tool results contain a text. */
  hasText(text: string, scope?: TextScope): boolean;
  /** How often they contain it. */
  countText(text: string, scope?: TextScope): number;
}

/** The log entry and its writer. */
export class RecordedRequest implements LogEntry {
  readonly n: number;
  readonly api: ApiName;
  readonly path: string;
  readonly receivedAt: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
  readonly bodyBytes: number;
  readonly bodySha256: string | undefined;
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly maxTokens: number | undefined;
  readonly messages: readonly RequestMessage[];
  readonly toolNames: readonly string[];
  /** The error with which the request must be refused. */
  readonly refusal: Violation | undefined;
  readonly #violations: string[];
  readonly #headersSent = Promise.withResolvers<boolean>();
  readonly #ended = Promise.withResolvers<Outcome>();
  #sent: { readonly status: number; readonly at: number } | undefined;
  #end: { readonly outcome: Outcome; readonly at: number } | undefined;
  #clientClosedAt: number | undefined;
  #usage: Usage | undefined;

  constructor(received: ReceivedRequest, violations: readonly Violation[]) {
    this.n = received.n;
    this.api = received.api;
    this.path = received.path;
    this.receivedAt = received.receivedAt;
    this.headers = received.headers;
    this.body = received.body;
    this.bodyBytes = received.bodyBytes;
    this.bodySha256 = received.bodySha256;
    this.model = received.model;
    this.stream = received.stream;
    this.maxTokens = received.maxTokens;
    this.messages = received.messages;
    this.toolNames = received.toolNames;
    this.refusal = violations[0];
    this.#violations = violations.map((violation) => violation.message);
  }

  get isWarming(): boolean {
    return this.maxTokens === (leastTokens[this.api] ?? 1);
  }
  get violations(): readonly string[] {
    return this.#violations;
  }
  get usage(): Usage | undefined {
    return this.#usage;
  }
  get status(): number | undefined {
    return this.#sent?.status;
  }
  get headersSentAt(): number | undefined {
    return this.#sent?.at;
  }
  get clientClosedAt(): number | undefined {
    return this.#clientClosedAt;
  }
  get endedAt(): number | undefined {
    return this.#end?.at;
  }
  get outcome(): Outcome | undefined {
    return this.#end?.outcome;
  }
  get headersSent(): Promise<boolean> {
    return this.#headersSent.promise;
  }
  get ended(): Promise<Outcome> {
    return this.#ended.promise;
  }

  hasText(text: string, scope?: TextScope): boolean {
    return this.countText(text, scope) > 0;
  }

  countText(text: string, scope?: TextScope): number {
    return countText(this.messages, text, scope);
  }

  recordViolation(violation: string): void {
    this.#violations.push(violation);
  }

  recordUsage(usage: Usage): void {
    this.#usage = usage;
  }

  recordHeaders(status: number): void {
    this.#sent ??= { status, at: Date.now() };
    this.#headersSent.resolve(true);
  }

  /** Records an error of the provider while it played the script. */
  recordFailure(error: unknown): void {
    this.recordViolation(`The provider failed: ${String(error)}`);
    this.recordEnd("broken");
  }

  /** The first outcome counts. */
  recordEnd(outcome: Outcome): void {
    if (this.#end !== undefined) return;
    const at = Date.now();
    if (outcome === "closed_by_client") this.#clientClosedAt = at;
    this.#end = { outcome, at };
    this.#headersSent.resolve(false);
    this.#ended.resolve(outcome);
  }
}

/** Header values as one string each, without credentials. */
export function redactedHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const shown: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    shown[name] = isCredential(name) ? "[redacted]" : [value].flat().join(", ");
  }
  return shown;
}

/** Path and query, without the API key that Google's clients may put there. */
export function redactedPath(url: string): string {
  return url.replace(/([?&](?:key|access_token)=)[^&]*/g, "$1[redacted]");
}

function isCredential(header: string): boolean {
  return /^(?:proxy-)?authorization$|^cookie$|api-?key|token|secret/.test(header);
}
