import { randomUUID } from "node:crypto";
import type {
  AfterProviderResponseEvent,
  CacheWarmingDecisionEvent,
  ExtensionContext,
  MessageUpdateEvent,
} from "@earendil-works/pi-coding-agent";
import { isLeftOutForGood } from "../../protocol/link.ts";
import type { OutwardBody } from "../link/outbound.ts";
import type { Memory } from "../memory.ts";
import type { AgentMessage, TreeReader } from "../pi-types.ts";
import type { TellExtensions } from "../provider/bus-events.ts";
import { RequestReporter } from "../provider/reporter.ts";
import { findEntries, whyLeftOut } from "./branch.ts";
import type { InsertedPushes } from "./inserted.ts";
import { deliveryIdOf } from "./marker.ts";
import { checkPresence } from "./presence.ts";
import { type Attempt, type Failure, type Finding, type HookEvent, isOpen, observe } from "./verdict.ts";

export interface ObserverOptions {
  readonly memory: Memory;
  readonly inserted: InsertedPushes;
  readonly send: (frame: OutwardBody) => void;
  readonly tell: TellExtensions;
}

const maxErrorLength = 1_024;

/** Observes the requests to the provider and reports their outcome. */
export class Observer {
  /** Reports every request to other extensions, and to the daemon while it watches. */
  readonly requests: RequestReporter;
  readonly #options: ObserverOptions;
  /** The message list of the open attempt. */
  #messages: readonly AgentMessage[] = [];

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.requests = new RequestReporter(options);
  }

  /** Handles a complete message list: starts an attempt for the pushes in it, and reports missing pushes. */
  offer(messages: readonly AgentMessage[], ctx: ExtensionContext): void {
    const { inserted, send } = this.#options;
    const listed = new Set(messages.map(deliveryIdOf).filter((id) => id !== undefined));
    this.#reportLeftOut(listed, ctx);
    const deliveryIds = [...listed].filter((id) => inserted.get(id) !== undefined);
    const requestId = randomUUID();
    this.#messages = deliveryIds.length > 0 ? messages : [];
    this.#observe({ kind: "request", requestId, deliveryIds });
    this.requests.offered(requestId, deliveryIds, messages, ctx);
    if (deliveryIds.length > 0) send({ kind: "prepared", requestId, deliveryIds });
  }

  payload(payload: unknown): void {
    const { memory, inserted } = this.#options;
    if (memory.observation.kind !== "offered") return;
    this.requests.payload(payload, { mayWarm: memory.observation.warming });
    const expected = Object.keys(memory.observation.attempt.payload).flatMap((id) => inserted.get(id) ?? []);
    const checks = expected.length === 0 ? {} : checkPresence(expected, this.#messages, payload);
    this.#observe({ kind: "payload", checks });
  }

  headers({ status, headers }: AfterProviderResponseEvent): void {
    this.#observe({ kind: "headers", status, contentType: contentTypeIn(headers) });
    const { observation } = this.#options.memory;
    // Only headers that the verdict attributes to this request.
    if (observation.kind === "offered" && typeof observation.response === "object") this.requests.headers(headers);
  }

  messageStart(message: AgentMessage, ctx: ExtensionContext): void {
    if (message.role !== "assistant" || this.#options.memory.observation.kind === "none") return;
    const { stopReason, api, errorMessage } = message;
    this.#observe({ kind: "start", stopReason, api, failure: failureOf(errorMessage, ctx) });
  }

  messageUpdate({ assistantMessageEvent }: MessageUpdateEvent): void {
    if (this.#options.memory.observation.kind !== "started") return;
    if (hasContent(assistantMessageEvent)) this.#observe({ kind: "content" });
  }

  messageEnd(message: AgentMessage, ctx: ExtensionContext): void {
    if (message.role !== "assistant") return;
    const { stopReason, errorMessage } = message;
    this.requests.answered(stopReason);
    if (this.#options.memory.observation.kind === "none") return;
    this.#observe({ kind: "end", stopReason, failure: failureOf(errorMessage, ctx) });
  }

  /**
   * Vetoes cache warming during an open attempt with pushes, because a warming request uses the same hooks as the
   * attempt's request. A request without pushes is not affected: its verdict waits for better evidence.
   */
  warming(event: CacheWarmingDecisionEvent): CacheWarmingDecisionEvent | undefined {
    const { observation } = this.#options.memory;
    const isVetoed = isOpen(observation) && Object.keys(observation.attempt.payload).length > 0;
    this.#observe({ kind: "warming" });
    return isVetoed ? { ...event, action: "stop" } : undefined;
  }

  /** The run is over. */
  over(failure: Failure): void {
    this.#observe({ kind: "over", failure });
    this.requests.retriesOver();
    this.#options.inserted.runOver();
  }

  /**
   * The session was replaced. Only pushes that are also in the new session's past, as in a fork, remain. The daemon
   * gets no report, because it continues the previous session in another pi.
   */
  sessionReplaced(session: TreeReader): void {
    const { inserted } = this.#options;
    this.#observe({ kind: "over", failure: { aborted: true, error: "The session was replaced." } });
    const undelivered = inserted.undelivered().map(({ deliveryId }) => deliveryId);
    inserted.clear();
    const taken = findEntries(session, new Set(undelivered));
    for (const entry of taken.values()) inserted.add(entry);
  }

  /** The transcript was compacted: pushes cut off before any request carried them can no longer reach the model. */
  compacted(ctx: ExtensionContext): void {
    const { inserted, send } = this.#options;
    this.requests.retriesOver();
    const gone = inserted
      .undelivered()
      .filter(({ entryId }) => whyLeftOut(ctx.sessionManager, entryId) === "compacted");
    const deliveryIds = gone.map(({ deliveryId }) => deliveryId);
    if (deliveryIds.length > 0) send({ kind: "leftOut", deliveryIds, reason: "compacted" });
    inserted.done(deliveryIds);
  }

  /** pi moved to another branch: no request carries pushes of the previous branch until pi returns. */
  moved(ctx: ExtensionContext): void {
    const { inserted, send } = this.#options;
    const left = inserted
      .undelivered()
      .filter(({ entryId }) => whyLeftOut(ctx.sessionManager, entryId) === "off_branch");
    const deliveryIds = left.map(({ deliveryId }) => deliveryId);
    if (deliveryIds.length > 0) send({ kind: "leftOut", deliveryIds, reason: "off_branch" });
  }

  /** A push whose entry can return stays under observation, and is reported again for each request without it. */
  #reportLeftOut(listed: ReadonlySet<string>, ctx: ExtensionContext): void {
    const { inserted, send } = this.#options;
    const missing = inserted.undelivered().filter(({ deliveryId }) => !listed.has(deliveryId));
    const byReason = Map.groupBy(missing, ({ entryId }) => whyLeftOut(ctx.sessionManager, entryId));
    for (const [reason, pushes] of byReason) {
      const deliveryIds = pushes.map(({ deliveryId }) => deliveryId);
      send({ kind: "leftOut", deliveryIds, reason });
      if (isLeftOutForGood(reason)) inserted.done(deliveryIds);
    }
  }

  #observe(event: HookEvent): void {
    const { memory } = this.#options;
    const { next, findings } = observe(memory.observation, event);
    memory.observation = next;
    for (const finding of findings) this.#report(finding);
    if (!isOpen(next)) this.#messages = [];
  }

  #report(finding: Finding): void {
    const { inserted, send } = this.#options;
    const { requestId, payload } = finding.attempt;
    const delivered = deliveredIn(finding.attempt);
    if (finding.kind === "answered") {
      inserted.done(delivered);
      if (delivered.length > 0) send({ kind: "answered", requestId, deliveryIds: delivered });
      return;
    }
    const { attempt: _attempt, ...verdict } = finding;
    if (finding.outcome === "delivered") inserted.delivered(delivered);
    if (Object.keys(payload).length > 0) send({ ...verdict, requestId, payload });
    this.requests.ended(finding);
  }
}

/** Pushes of an attempt that its payload contained, or that could not be checked. */
function deliveredIn({ payload }: Attempt): string[] {
  return Object.keys(payload).filter((id) => payload[id] !== "unverified");
}

function contentTypeIn(headers: AfterProviderResponseEvent["headers"]): string | undefined {
  const value: unknown = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === "content-type")?.[1];
  return typeof value === "string" ? value : undefined;
}

/** pi 0.87.1 reports an abort during a tool as an error, so the signal is checked too. */
function failureOf(errorMessage: string | undefined, ctx: ExtensionContext): Failure {
  const status = statusIn(errorMessage);
  return {
    aborted: ctx.signal?.aborted === true,
    ...(errorMessage === undefined ? {} : { error: errorMessage.slice(0, maxErrorLength) }),
    ...(status === undefined ? {} : { status }),
  };
}

/** pi keeps the status of a refused request only at the start of its error text, or in Google's error body. */
function statusIn(errorMessage: string | undefined): number | undefined {
  const digits = /^(?:(?:[^:(]{0,64}\()?|\{"error":\{"code":)([45]\d\d)(?:[:), ]|$)/.exec(errorMessage ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}

function hasContent(event: MessageUpdateEvent["assistantMessageEvent"]): boolean {
  switch (event.type) {
    case "text_delta":
    case "thinking_delta":
    case "toolcall_delta":
      return event.delta !== "";
    case "text_end":
    case "thinking_end":
      return event.content !== "";
    case "toolcall_end":
      return true;
    default:
      return false;
  }
}
