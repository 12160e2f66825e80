import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { InwardFrame } from "../../protocol/link-inward.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { Composition } from "../../protocol/provider.ts";
import { covers, type ProviderLevel } from "../../protocol/provider-level.ts";
import type { Finding } from "../delivery/verdict.ts";
import type { OutwardBody } from "../link/outbound.ts";
import { type AgentMessage, messageOf } from "../pi-types.ts";
import { BodyFiles, type BodyTarget, factsOf } from "./bodies.ts";
import type { PayloadFacts, ProviderRequest, TellExtensions } from "./bus-events.ts";
import { compositionOf } from "./composition.ts";
import { type ShownHeaders, shownHeaders } from "./headers.ts";

/** What the daemon wants reported about requests. Part of the memory that outlives the module. */
export interface ProviderWatch {
  readonly level: ProviderLevel;
  readonly bodies: BodyTarget;
  /** Whether the tools `edit` and `write` wait a moment before their work. */
  readonly holdEdits: boolean;
  /** Whether the text of a file is reported before the tool `write` replaces it. */
  readonly formerText?: boolean;
}

export const unwatched: ProviderWatch = { level: "off", bodies: { prefix: "", maxBytes: 0 }, holdEdits: false };

/** The current request. Part of the memory that outlives the module. */
export interface ReportedRequest extends ProviderRequest {
  /** Whether the daemon was watching when the request was made. */
  readonly isWatched: boolean;
  readonly messageCount: number;
  /** Undefined: the daemon does not watch. */
  readonly composition: Composition | undefined;
  readonly model: { readonly provider: string; readonly id: string } | undefined;
  /** `performance.now()` when the request was sent, or the best estimate. */
  readonly leftAt: number;
  readonly isReported: boolean;
  /** Facts of the payload that was reported. */
  readonly reportedFacts: PayloadFacts | undefined;
  /** Facts of the last payload sent, if it differs from the reported one. */
  readonly last: PayloadFacts | undefined;
  readonly headers: ShownHeaders | undefined;
}

export interface ReporterOptions {
  readonly memory: { watch: ProviderWatch; request: ReportedRequest | undefined };
  readonly send: (frame: OutwardBody) => void;
  readonly tell: TellExtensions;
}

type Watch = Omit<Extract<InwardFrame, { kind: "watch" }>, "kind" | "rid">;
type Verdict = Extract<Finding, { kind: "verdict" }>;

/**
 * Reports requests to the provider: every request to other extensions, and while the daemon watches, one `request` and
 * one `requestEnd` to the daemon. Never throws.
 */
export class RequestReporter {
  readonly #options: ReporterOptions;
  readonly #bodies = new BodyFiles();
  #messages: readonly AgentMessage[] = [];
  /** Number of consecutive failures of a request, which pi retries. */
  #retries = 0;

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** Sets the level of reports, starting with the next request. */
  watch({ provider, bodyPrefix, maxBodyBytes, holdEdits = false, formerText = false }: Watch): void {
    const bodies = { prefix: bodyPrefix, maxBytes: maxBodyBytes };
    this.#options.memory.watch = { level: provider, bodies, holdEdits, formerText };
  }

  /** A message list is complete, and a request is about to be made. */
  offered(requestId: string, deliveryIds: readonly string[], messages: readonly AgentMessage[], ctx: ExtensionContext) {
    const { memory } = this.#options;
    this.#messages = covers(memory.watch.level, "messages") ? messages : [];
    const model = ctx.model === undefined ? undefined : { provider: ctx.model.provider, id: ctx.model.id };
    const isWatched = memory.watch.level !== "off";
    memory.request = {
      requestId,
      attempt: this.#retries + 1,
      deliveryIds,
      isWatched,
      messageCount: messages.length,
      composition: isWatched ? this.#tried(() => compositionOf(messages)) : undefined,
      model,
      leftAt: performance.now(),
      isReported: false,
      reportedFacts: undefined,
      last: undefined,
      headers: undefined,
    };
  }

  /** An assistant's message is complete. After an error pi retries the request or ends the run. */
  answered(stopReason: string): void {
    this.#retries = stopReason === "error" ? this.#retries + 1 : 0;
  }

  /** The run is over or its context was compacted: the next request is not a retry. */
  retriesOver(): void {
    this.#retries = 0;
  }

  /**
   * Payload that pi is about to send. `mayWarm`: it may belong to a cache-warming request, which repeats the last one
   * with a limit of one token.
   */
  payload(payload: unknown, { mayWarm }: { readonly mayWarm: boolean }): void {
    const { memory } = this.#options;
    const { request } = memory;
    if (request === undefined || (mayWarm && asksForOneToken(payload))) return;
    const text = this.#text(payload);
    const facts = text === undefined ? undefined : factsOf(text);
    const leftAt = performance.now();
    if (request.isReported) {
      const isOther = facts?.payloadSha256 !== request.reportedFacts?.payloadSha256;
      memory.request = { ...request, leftAt, last: isOther ? facts : undefined };
      return;
    }
    memory.request = { ...request, leftAt, reportedFacts: facts };
    this.#reportPrepared(text);
  }

  /** Headers of the response that accepted the request. */
  headers(headers: unknown): void {
    const { memory } = this.#options;
    if (memory.request !== undefined) memory.request = { ...memory.request, headers: shownHeaders(headers) };
  }

  /** Reports the verdict about a request, and first the request itself if pi did not show its payload. */
  ended(finding: Verdict): void {
    const { memory, send, tell } = this.#options;
    if (memory.request?.requestId !== finding.attempt.requestId) return;
    if (!memory.request.isReported) this.#reportPrepared(undefined);
    const { requestId, attempt, deliveryIds, isWatched, leftAt, headers, last } = memory.request;
    memory.request = undefined;
    this.#messages = [];
    const { kind: _kind, attempt: _attempt, ...verdict } = finding;
    const latencyMs = Math.max(0, Math.round(performance.now() - leftAt));
    const shown =
      finding.outcome !== "delivered" || headers === undefined
        ? {}
        : { headers: headers.headers, ...(headers.omitted > 0 ? { headersOmitted: headers.omitted } : {}) };
    if (isWatched) send({ kind: "requestEnd", requestId, ...verdict, latencyMs, ...shown, ...last });
    const request = { requestId, attempt, deliveryIds, latencyMs };
    if (verdict.outcome === "delivered") {
      const { outcome: _outcome, ...accepted } = verdict;
      tell("provider_request_delivered", { ...request, ...accepted, ...shown, ...last });
    } else {
      const { outcome: reason, ...refused } = verdict;
      tell("provider_request_failed", { ...request, reason, ...refused });
    }
  }

  #reportPrepared(payload: string | undefined): void {
    const { memory, send, tell } = this.#options;
    const { request, watch } = memory;
    if (request === undefined) return;
    const { requestId, attempt, deliveryIds, isWatched, messageCount, composition, model, reportedFacts } = request;
    memory.request = { ...request, isReported: true };
    const summary = { deliveryIds, messageCount, ...(model === undefined ? {} : { model }), ...reportedFacts };
    tell("provider_request_prepared", { requestId, attempt, ...summary });
    if (!isWatched) return;
    const messages = this.#messages.length === 0 ? undefined : this.#text(this.#messages);
    this.#messages = [];
    const leave = (name: string, text: string | undefined) =>
      text === undefined ? undefined : this.#bodies.leave(watch.bodies, `${requestId}.${name}`, text);
    const messagesFacts = covers(watch.level, "messages") ? leave("messages", messages) : undefined;
    const payloadFacts = covers(watch.level, "payload") ? leave("payload", payload) : undefined;
    send({
      kind: "request",
      requestId,
      ...summary,
      ...(composition === undefined ? {} : { composition }),
      ...(messagesFacts === undefined ? {} : { messages: messagesFacts }),
      ...(payloadFacts === undefined ? {} : { payload: payloadFacts }),
    });
  }

  /** Returns a value as JSON, or `undefined` if it cannot be written. */
  #text(value: unknown): string | undefined {
    return this.#tried(() => JSON.stringify(value));
  }

  #tried<T>(make: () => T): T | undefined {
    try {
      return make();
    } catch (thrown) {
      if (this.#options.memory.watch.level === "off") return undefined;
      this.#options.send({ kind: "fault", where: "provider", error: messageOf(thrown).slice(0, 1_024) });
      return undefined;
    }
  }
}

function asksForOneToken(payload: unknown): boolean {
  if (!isRecord(payload)) return false;
  const { config } = payload;
  const limits = [payload["max_tokens"], payload["max_completion_tokens"], payload["max_output_tokens"]];
  return limits.includes(1) || (isRecord(config) && config["maxOutputTokens"] === 1);
}
