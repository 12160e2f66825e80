import type { Logger } from "pino";
import type { BodyFacts, OutwardFrame } from "../../protocol/link-outward.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { RequestDelivered, RequestFailed, RequestPrepared } from "../../protocol/provider.ts";
import { covers, type ProviderLevel } from "../../protocol/provider-level.ts";
import { dropBodies, dropBody, takeBody } from "../pi/body-file.ts";
import type { Child } from "../pi/child.ts";
import type { PiEvent } from "../pi/records.ts";
import type { Journal } from "./journal.ts";

export interface ProviderWatchOptions {
  readonly journal: Journal;
  /** A larger message list or payload is omitted. */
  readonly maxBodyBytes: number;
  readonly log: Logger;
}

/** Maximum number of level changes that wait for the helper. */
const maxAsking = 8;

type Request = Extract<OutwardFrame, { kind: "request" }>;
type RequestEnd = Extract<OutwardFrame, { kind: "requestEnd" }>;
/** The fields that the journal does not add. */
type Told<T> = Omit<T, "sessionId" | "after">;
type Body = "messages" | "payload";

/** A request that was reported to subscribers. */
interface Open {
  readonly requestId: string;
  readonly subscribers: ReadonlySet<string>;
}

/**
 * Reports provider requests to subscribers at their levels, and asks the helper only for the highest level in use. A
 * subscriber that saw a request being prepared receives its outcome exactly once, also when the child dies.
 */
export class ProviderWatch {
  readonly #options: ProviderWatchOptions;
  #child: Child | undefined;
  /** The level that the child's helper was asked for. Undefined: unknown. */
  #asked: string | undefined;
  /** Frames that the helper has not acknowledged. */
  #asking = 0;
  #open: Open | undefined;
  /** A failure that waits for pi to say whether it retries, which it does a moment later. */
  #failure: { readonly open: Open; readonly told: Told<RequestFailed> } | undefined;
  /** Consecutive retries that pi announced. */
  #retries = 0;

  constructor(options: ProviderWatchOptions) {
    this.#options = options;
    options.journal.onProviderLevel(() => this.#ask());
  }

  /** A child is ready. Its helper reports nothing until asked. */
  attach(child: Child): void {
    this.#child = child;
    // What the helper of a former daemon's child was asked for is not known.
    this.#asked = child.restoredAt === undefined ? "off" : undefined;
    if (child.retires === undefined) this.#ask();
  }

  /** Takes a helper's report in the order of pi's records. */
  receive(frame: OutwardFrame): void {
    switch (frame.kind) {
      case "request":
        this.#prepared(frame);
        break;
      case "requestEnd":
        this.#ended(frame);
        break;
      case "hello":
        // The helper was reloaded and may have lost its level.
        this.#tellFailure();
        this.#asked = undefined;
        this.#ask();
        break;
      default:
    }
  }

  /** Reads pi's own retry events. */
  look(event: PiEvent): void {
    switch (event.type) {
      case "message_end":
        if (isAnswer(event["message"])) this.#retries = 0;
        break;
      case "agent_end": {
        const willRetry = event["willRetry"] === true;
        this.#retries = willRetry ? this.#retries + 1 : 0;
        this.#tellFailure(willRetry);
        break;
      }
      case "agent_settled":
        this.#tellFailure();
        break;
      default:
    }
  }

  /** Ends the open requests of a child. */
  childEnded(child: Child, at: number): void {
    this.#tellFailure();
    this.#endOpen(at, "pi ended before the provider's answer.");
    this.#retries = 0;
    if (this.#child !== child) return;
    this.#child = undefined;
    void dropBodies(child.link.bodyPrefix);
  }

  #prepared(frame: Request): void {
    const { journal } = this.#options;
    this.#tellFailure();
    this.#endOpen(frame.at, "Another request was made before this one had ended.");
    const { at, requestId, deliveryIds, messageCount, composition, model, payloadBytes, payloadSha256 } = frame;
    const told: Told<RequestPrepared> = {
      requestId,
      at,
      attempt: this.#retries + 1,
      deliveryIds: [...deliveryIds],
      ...(model === undefined ? {} : { model }),
      messageCount,
      ...(composition === undefined ? {} : { composition }),
      ...(payloadBytes === undefined ? {} : { payloadBytes }),
      ...(payloadSha256 === undefined ? {} : { payloadSha256 }),
    };
    const highest = journal.providerLevel;
    const bodies = {
      messages: this.#take(frame, "messages", highest),
      payload: this.#take(frame, "payload", highest),
    };
    const subscribers = journal.tell("provider/requestPrepared", (level) => {
      const wanted = (["messages", "payload"] as const).filter((body) => covers(level, body));
      const parts = wanted.flatMap((body) => (bodies[body] === undefined ? [] : [[body, bodies[body]] as const]));
      const isTruncated = wanted.some((body) => frame[body] !== undefined && bodies[body] === undefined);
      const params = {
        ...told,
        ...(covers(level, "messages") && frame.messages !== undefined ? { messagesBytes: frame.messages.bytes } : {}),
        ...(isTruncated ? { truncated: true } : {}),
      };
      return { params, parts };
    });
    this.#open = { requestId, subscribers };
  }

  #ended({ kind: _kind, outcome, evidence, error, latencyMs, headers, ...frame }: RequestEnd): void {
    const open = this.#open;
    if (open?.requestId !== frame.requestId) return;
    this.#open = undefined;
    if (outcome === "delivered" && evidence !== undefined) {
      const params: Told<RequestDelivered> = {
        ...frame,
        evidence,
        latencyMs,
        ...(headers === undefined ? {} : { headers }),
      };
      this.#tell("provider/requestDelivered", open, params);
      return;
    }
    const { at, requestId, status } = frame;
    const told: Told<RequestFailed> = {
      requestId,
      at,
      ...(status === undefined ? {} : { status }),
      reason: outcome === "aborted" ? "aborted" : "failed",
      ...(error === undefined ? {} : { error }),
    };
    this.#failure = { open, told };
  }

  #endOpen(at: number, error: string): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    const params: Told<RequestFailed> = { requestId: open.requestId, at, reason: "unknown", error };
    this.#tell("provider/requestFailed", open, params);
  }

  #tellFailure(willRetry?: boolean): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure === undefined) return;
    const params = { ...failure.told, ...(willRetry === undefined ? {} : { willRetry }) };
    this.#tell("provider/requestFailed", failure.open, params);
  }

  #tell(method: "provider/requestDelivered" | "provider/requestFailed", { subscribers }: Open, params: object): void {
    this.#options.journal.tell(method, () => ({ params, parts: [] }), subscribers);
  }

  /** Returns a body that exists and that a subscriber wants. Deletes a body that no subscriber wants any more. */
  #take(frame: Request, body: Body, highest: ProviderLevel): Buffer | undefined {
    const facts: BodyFacts | undefined = frame[body];
    if (facts?.isLeft !== true || this.#child === undefined) return undefined;
    const path = `${this.#child.link.bodyPrefix}${frame.requestId}.${body}`;
    if (covers(highest, body)) {
      return takeBody(path, body === "messages" ? "array" : "object", this.#options.maxBodyBytes);
    }
    dropBody(path);
    return undefined;
  }

  /**
   * Asks the helper for the highest level in use. It does not wait for the previous answer if possible: otherwise a
   * request right after a subscription would be missed.
   */
  #ask(): void {
    const child = this.#child;
    const { providerLevel: provider, subscriptions } = this.#options.journal;
    const { holdsEdits: holdEdits, wantsFormerText: formerText } = subscriptions;
    const asked = [provider, ...(holdEdits ? ["holdEdits"] : []), ...(formerText ? ["formerText"] : [])].join(" and ");
    if (child === undefined || this.#asking >= maxAsking || this.#asked === asked) return;
    this.#asking += 1;
    this.#asked = asked;
    const { bodyPrefix } = child.link;
    child.link
      .send({
        kind: "watch",
        provider,
        bodyPrefix,
        maxBodyBytes: this.#options.maxBodyBytes,
        ...(holdEdits && { holdEdits }),
        ...(formerText && { formerText }),
      })
      .catch((error: unknown) => {
        if (child.state.kind === "ready") {
          this.#options.log.error({ err: error }, "cannot set the helper's level for provider requests");
        }
      })
      .finally(() => {
        this.#asking -= 1;
        this.#ask();
      });
  }
}

function isAnswer(message: unknown): boolean {
  return isRecord(message) && message["role"] === "assistant" && message["stopReason"] !== "error";
}
