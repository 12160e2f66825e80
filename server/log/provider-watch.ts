import type { Logger } from "pino";
import type { BodyFacts, OutwardFrame } from "../../protocol/link.ts";
import type { RequestDelivered, RequestFailed, RequestPrepared } from "../../protocol/provider.ts";
import { covers, type ProviderLevel } from "../../protocol/provider-level.ts";
import { dropBodies, dropBody, takeBody } from "../pi/body-file.ts";
import type { Child } from "../pi/child.ts";
import { isRecordObject, type PiEvent } from "../pi/records.ts";
import type { Journal } from "./journal.ts";

export interface ProviderWatchOptions {
  readonly journal: Journal;
  /** A larger message list or payload is left out. */
  readonly maxBodyBytes: number;
  readonly log: Logger;
}

/** More changes of what subscribers want wait for the helper. */
const maxAsking = 8;

type Request = Extract<OutwardFrame, { kind: "request" }>;
type RequestEnd = Extract<OutwardFrame, { kind: "requestEnd" }>;
/** What is not put in by the journal. */
type Told<T> = Omit<T, "sessionId" | "after">;
type Body = "messages" | "payload";

/** A request that subscribers were told of. */
interface Open {
  readonly requestId: string;
  readonly subscribers: ReadonlySet<string>;
}

/**
 * Tells subscribers of the requests to the provider, each as far as it asked, and has the helper report only what somebody
 * asks for. Whoever was told that a request is prepared is told once how it ended, also when the child dies.
 */
export class ProviderWatch {
  readonly #options: ProviderWatchOptions;
  #child: Child | undefined;
  /** What the child's helper was asked to report. Undefined: nobody knows. */
  #asked: ProviderLevel | undefined;
  /** Frames to the helper that it has not taken yet. */
  #asking = 0;
  #open: Open | undefined;
  /** A failure that waits for pi to say whether it tries again: it does so a moment later. */
  #failure: { readonly open: Open; readonly told: Told<RequestFailed> } | undefined;
  /** How often in a row pi has said that it tries again. */
  #retries = 0;

  constructor(options: ProviderWatchOptions) {
    this.#options = options;
    options.journal.onProviderLevel(() => this.#ask());
  }

  /** A child is ready. Its helper reports nothing unasked. */
  attach(child: Child): void {
    this.#child = child;
    this.#asked = "off";
    this.#ask();
  }

  /** What the helper reports, in its place in the order of pi's records. */
  receive(frame: OutwardFrame): void {
    switch (frame.kind) {
      case "request":
        this.#prepared(frame);
        break;
      case "requestEnd":
        this.#ended(frame);
        break;
      case "hello":
        // The helper was loaded anew, and may have missed what it was asked.
        this.#tellFailure();
        this.#asked = undefined;
        this.#ask();
        break;
      default:
    }
  }

  /** What pi itself says of retries. */
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

  /** What was open with the child ends with it. */
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
    const { at, requestId, deliveryIds, messageCount, model, payloadBytes, payloadSha256 } = frame;
    const told: Told<RequestPrepared> = {
      requestId,
      at,
      attempt: this.#retries + 1,
      deliveryIds: [...deliveryIds],
      ...(model === undefined ? {} : { model }),
      messageCount,
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

  /** A body that is there and that somebody wants. What nobody wants any more is deleted. */
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
   * Asks the helper for as much as the most curious subscriber wants. Not behind the answer to the frame before, as far
   * as it can be helped: a request that is made right behind a subscription would be told to nobody.
   */
  #ask(): void {
    const child = this.#child;
    const provider = this.#options.journal.providerLevel;
    if (child === undefined || this.#asking >= maxAsking || this.#asked === provider) return;
    this.#asking += 1;
    this.#asked = provider;
    const { bodyPrefix } = child.link;
    child.link
      .send({ kind: "watch", provider, bodyPrefix, maxBodyBytes: this.#options.maxBodyBytes })
      .catch((error: unknown) => {
        if (child.state.kind === "ready") {
          this.#options.log.error({ err: error }, "the helper could not be told what to report of requests");
        }
      })
      .finally(() => {
        this.#asking -= 1;
        this.#ask();
      });
  }
}

function isAnswer(message: unknown): boolean {
  return isRecordObject(message) && message["role"] === "assistant" && message["stopReason"] !== "error";
}
