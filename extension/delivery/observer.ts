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
import { deliveryIdOf } from "./marker.ts";
import { checkPresence } from "./presence.ts";
import type { StandingList } from "./standing.ts";
import { type Attempt, type Failure, type Finding, isOpen, observe, type Sighting } from "./verdict.ts";

export interface ObserverOptions {
  readonly memory: Memory;
  readonly standing: StandingList;
  readonly send: (frame: OutwardBody) => void;
  readonly tell: TellExtensions;
}

const maxErrorLength = 1_024;

/** Watches the requests to the provider, and reports what became of each. */
export class Observer {
  /** Tells other extensions of every request, and the daemon while somebody watches. */
  readonly requests: RequestReporter;
  readonly #options: ObserverOptions;
  /** The message list of the open attempt. */
  #messages: readonly AgentMessage[] = [];

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.requests = new RequestReporter(options);
  }

  /** A message list is complete. Mints an attempt for the pushes in it, and reports those that are not in it. */
  offer(messages: readonly AgentMessage[], ctx: ExtensionContext): void {
    const { standing, send } = this.#options;
    const listed = new Set(messages.map(deliveryIdOf).filter((id) => id !== undefined));
    this.#reportLeftOut(listed, ctx);
    const deliveryIds = [...listed].filter((id) => standing.get(id) !== undefined);
    const requestId = randomUUID();
    this.#messages = deliveryIds.length > 0 ? messages : [];
    this.#see({ kind: "request", requestId, deliveryIds });
    this.requests.offered(requestId, deliveryIds, messages, ctx);
    if (deliveryIds.length > 0) send({ kind: "prepared", requestId, deliveryIds });
  }

  payload(payload: unknown): void {
    const { memory, standing } = this.#options;
    if (memory.observation.kind !== "offered") return;
    this.requests.payload(payload, { mayWarm: memory.observation.warming });
    const expected = Object.keys(memory.observation.attempt.payload).flatMap((id) => standing.get(id) ?? []);
    const checks = expected.length === 0 ? {} : checkPresence(expected, this.#messages, payload);
    this.#see({ kind: "payload", checks });
  }

  headers({ status, headers }: AfterProviderResponseEvent): void {
    this.#see({ kind: "headers", status, contentType: contentTypeIn(headers) });
    const { observation } = this.#options.memory;
    // Only those that the verdict believes to be this request's own.
    if (observation.kind === "offered" && typeof observation.response === "object") this.requests.headers(headers);
  }

  messageStart(message: AgentMessage, ctx: ExtensionContext): void {
    if (message.role !== "assistant" || this.#options.memory.observation.kind === "none") return;
    const { stopReason, api, errorMessage } = message;
    this.#see({ kind: "start", stopReason, api, failure: failureOf(errorMessage, ctx) });
  }

  messageUpdate({ assistantMessageEvent }: MessageUpdateEvent): void {
    if (this.#options.memory.observation.kind !== "started") return;
    if (hasContent(assistantMessageEvent)) this.#see({ kind: "content" });
  }

  messageEnd(message: AgentMessage, ctx: ExtensionContext): void {
    if (message.role !== "assistant") return;
    const { stopReason, errorMessage } = message;
    this.requests.answered(stopReason);
    if (this.#options.memory.observation.kind === "none") return;
    this.#see({ kind: "end", stopReason, failure: failureOf(errorMessage, ctx) });
  }

  /**
   * Keeps warming requests away from an open attempt with pushes: they go through the same hooks as the attempt's own
   * request. For a request that is only watched it changes nothing: the verdict then waits for better evidence.
   */
  warming(event: CacheWarmingDecisionEvent): CacheWarmingDecisionEvent | undefined {
    const { observation } = this.#options.memory;
    const isVetoed = isOpen(observation) && Object.keys(observation.attempt.payload).length > 0;
    this.#see({ kind: "warming" });
    return isVetoed ? { ...event, action: "stop" } : undefined;
  }

  /** Nothing more comes of the run. */
  over(failure: Failure): void {
    this.#see({ kind: "over", failure });
    this.requests.retriesOver();
    this.#options.standing.runOver();
  }

  /**
   * The session is another one: what stood in the one before is not in this one's requests, unless this one has it in its
   * past too, as a fork can. The daemon is not told of it: it goes on with the session before, in another pi.
   */
  sessionReplaced(session: TreeReader): void {
    const { standing } = this.#options;
    this.#see({ kind: "over", failure: { aborted: true, error: "The session was replaced." } });
    const undelivered = standing.undelivered().map(({ deliveryId }) => deliveryId);
    standing.clear();
    const taken = findEntries(session, new Set(undelivered));
    for (const entry of taken.values()) standing.add(entry);
  }

  /** The transcript was compacted: what was cut off before any request carried it reaches no model any more. */
  compacted(ctx: ExtensionContext): void {
    const { standing, send } = this.#options;
    this.requests.retriesOver();
    const gone = standing
      .undelivered()
      .filter(({ entryId }) => whyLeftOut(ctx.sessionManager, entryId) === "compacted");
    const deliveryIds = gone.map(({ deliveryId }) => deliveryId);
    if (deliveryIds.length > 0) send({ kind: "leftOut", deliveryIds, reason: "compacted" });
    standing.done(deliveryIds);
  }

  /** pi has gone to another branch: what was left on the one before is carried by no request until pi comes back. */
  moved(ctx: ExtensionContext): void {
    const { standing, send } = this.#options;
    const left = standing
      .undelivered()
      .filter(({ entryId }) => whyLeftOut(ctx.sessionManager, entryId) === "off_branch");
    const deliveryIds = left.map(({ deliveryId }) => deliveryId);
    if (deliveryIds.length > 0) send({ kind: "leftOut", deliveryIds, reason: "off_branch" });
  }

  /** A push whose entry can come back is watched for in later requests, and reported again for each that leaves it out. */
  #reportLeftOut(listed: ReadonlySet<string>, ctx: ExtensionContext): void {
    const { standing, send } = this.#options;
    const missing = standing.undelivered().filter(({ deliveryId }) => !listed.has(deliveryId));
    const byReason = Map.groupBy(missing, ({ entryId }) => whyLeftOut(ctx.sessionManager, entryId));
    for (const [reason, pushes] of byReason) {
      const deliveryIds = pushes.map(({ deliveryId }) => deliveryId);
      send({ kind: "leftOut", deliveryIds, reason });
      if (isLeftOutForGood(reason)) standing.done(deliveryIds);
    }
  }

  #see(sighting: Sighting): void {
    const { memory } = this.#options;
    const { next, findings } = observe(memory.observation, sighting);
    memory.observation = next;
    for (const finding of findings) this.#report(finding);
    if (!isOpen(next)) this.#messages = [];
  }

  #report(finding: Finding): void {
    const { standing, send } = this.#options;
    const { requestId, payload } = finding.attempt;
    const got = gotBy(finding.attempt);
    if (finding.kind === "answered") {
      standing.done(got);
      if (got.length > 0) send({ kind: "answered", requestId, deliveryIds: got });
      return;
    }
    const { attempt: _attempt, ...verdict } = finding;
    if (finding.outcome === "delivered") standing.delivered(got);
    if (Object.keys(payload).length > 0) send({ ...verdict, requestId, payload });
    this.requests.ended(finding);
  }
}

/** The pushes of an attempt that were in its payload, as far as can be known. */
function gotBy({ payload }: Attempt): string[] {
  return Object.keys(payload).filter((id) => payload[id] !== "unverified");
}

function contentTypeIn(headers: AfterProviderResponseEvent["headers"]): string | undefined {
  const value: unknown = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === "content-type")?.[1];
  return typeof value === "string" ? value : undefined;
}

/** pi 0.87.1 calls an abort during a tool an error, so the signal is asked too. */
function failureOf(errorMessage: string | undefined, ctx: ExtensionContext): Failure {
  const status = statusIn(errorMessage);
  return {
    aborted: ctx.signal?.aborted === true,
    ...(errorMessage === undefined ? {} : { error: errorMessage.slice(0, maxErrorLength) }),
    ...(status === undefined ? {} : { status }),
  };
}

/** pi keeps the status of a refused request only as the beginning of its words about it, or as Google's error body. */
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
