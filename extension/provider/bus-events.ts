import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { Evidence } from "../../protocol/delivery.ts";
import type { ModelRef } from "../../protocol/session.ts";

/** A request to the model's provider. */
export interface ProviderRequest {
  /** The same in the events of one request, and in the progress of the deliveries that it carries. */
  readonly requestId: string;
  /** 1, and one more at each retry of the same request by pi. */
  readonly attempt: number;
  /** The messages sent by `deliver`, and the clients' pushes, that are in its message list and on their way. */
  readonly deliveryIds: readonly string[];
}

/** Bytes of the payload as JSON, and their hash in hexadecimal digits. Absent where pi shows no payload. */
export interface PayloadFacts {
  readonly payloadBytes?: number;
  readonly payloadSha256?: string;
}

/** A request leaves for the provider. */
export interface ProviderRequestPrepared extends ProviderRequest, PayloadFacts {
  /** Messages in pi's list, the system prompt among them. */
  readonly messageCount: number;
  readonly model?: ModelRef;
}

/** The provider has accepted a request. It has the payload's facts where another payload than the first was sent last. */
export interface ProviderRequestDelivered extends ProviderRequest, PayloadFacts {
  /** What the acceptance rests on. */
  readonly evidence: Evidence;
  /** From the request's leaving to this evidence. */
  readonly latencyMs: number;
  /** HTTP status, where the provider's API gives one. */
  readonly status?: number;
  /** Of the response; values that may be secrets are `[redacted]`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How many headers were left out, beyond 64 of them or 16 KiB. */
  readonly headersOmitted?: number;
}

/** A request has ended without the provider's acceptance. */
export interface ProviderRequestFailed extends ProviderRequest {
  readonly reason: "failed" | "aborted";
  readonly latencyMs: number;
  readonly status?: number;
  /** The provider's words, or pi's, at most 1 KiB. */
  readonly error?: string;
}

/** What is sent on `pi.events` of each request, by channel: one `…_prepared`, then one of the others. Frozen objects. */
export interface ProviderRequestEvents {
  readonly provider_request_prepared: ProviderRequestPrepared;
  readonly provider_request_delivered: ProviderRequestDelivered;
  readonly provider_request_failed: ProviderRequestFailed;
}

export type TellExtensions = <C extends keyof ProviderRequestEvents>(
  channel: C,
  event: ProviderRequestEvents[C],
) => void;

/** Tells the other extensions of this pi. The bus passes references, so each is given a frozen copy. */
export function tellExtensions(pi: Pick<ExtensionAPI, "events">): TellExtensions {
  return (channel, event) => {
    try {
      pi.events.emit(channel, frozen(structuredClone(event)));
    } catch {
      // This life of the extensions has ended, or a listener threw: neither is of interest to the request.
    }
  };
}

function frozen<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === "object" && inner !== null) frozen(inner);
  return Object.freeze(value);
}
