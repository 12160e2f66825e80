import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { Evidence } from "../../protocol/delivery.ts";
import type { ModelRef } from "../../protocol/session.ts";

/** A request to the model's provider. */
export interface ProviderRequest {
  /** Identifies the request in all its events and in the progress of its deliveries. */
  readonly requestId: string;
  /** Starts at 1 and increases with each retry of the request by pi. */
  readonly attempt: number;
  /** Open deliveries in its message list: messages of `deliver` and clients' pushes. */
  readonly deliveryIds: readonly string[];
}

/** Bytes of the payload as JSON, and their hash in hexadecimal digits. Absent where pi shows no payload. */
export interface PayloadFacts {
  readonly payloadBytes?: number;
  readonly payloadSha256?: string;
}

/** A request is about to be sent to the provider. */
export interface ProviderRequestPrepared extends ProviderRequest, PayloadFacts {
  /** Number of messages in pi's list, including the system prompt. */
  readonly messageCount: number;
  readonly model?: ModelRef;
}

/**
 * The provider has accepted a request. Includes the payload's facts if the last payload sent differs from the first.
 */
export interface ProviderRequestDelivered extends ProviderRequest, PayloadFacts {
  /** The evidence of the acceptance. */
  readonly evidence: Evidence;
  /** Time from sending the request to this evidence. */
  readonly latencyMs: number;
  /** HTTP status, if the provider's API has one. */
  readonly status?: number;
  /** Response headers; possible secrets are `[redacted]`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Number of headers left out, beyond 64 headers or 16 KiB. */
  readonly headersOmitted?: number;
}

/** A request has ended without the provider's acceptance. */
export interface ProviderRequestFailed extends ProviderRequest {
  readonly reason: "failed" | "aborted";
  readonly latencyMs: number;
  readonly status?: number;
  /** Error text of the provider or pi, at most 1 KiB. */
  readonly error?: string;
}

/**
 * Events of each request on `pi.events`, by channel: one `…_prepared`, then one of the others. The objects are frozen.
 */
export interface ProviderRequestEvents {
  readonly provider_request_prepared: ProviderRequestPrepared;
  readonly provider_request_delivered: ProviderRequestDelivered;
  readonly provider_request_failed: ProviderRequestFailed;
}

export type TellExtensions = <C extends keyof ProviderRequestEvents>(
  channel: C,
  event: ProviderRequestEvents[C],
) => void;

/** Notifies the other extensions of this pi. The bus passes references, so each event is a frozen copy. */
export function tellExtensions(pi: Pick<ExtensionAPI, "events">): TellExtensions {
  return (channel, event) => {
    try {
      pi.events.emit(channel, frozen(structuredClone(event)));
    } catch {
      // These extension instances have ended, or a listener threw: neither affects the request.
    }
  };
}

function frozen<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) frozen(inner);
  return Object.freeze(value);
}
