import type { Static } from "typebox";
import { Evidence } from "./delivery.ts";
import { DeliveryId, Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { providerLevels } from "./provider-level.ts";
import { ModelRef } from "./session.ts";

/** What a subscriber wants to hear of the requests to the provider. */
export const ProviderLevel = Type.Enum(providerLevels, {
  description:
    "What to tell of the session's requests to the model's provider. `summary`: each request and how it ended. `messages`: with pi's message list too. `payload`: with the payload too. Default: what this connection asked for before, else off.",
});
export type ProviderLevel = Static<typeof ProviderLevel>;

const place = {
  sessionId: SessionId,
  requestId: Type.String({ description: "The request's id; a delivery's attempts have the same." }),
  after: {
    ...Seq,
    description:
      "The session's newest seq when this was sent. The notification follows that one and has no seq of its own.",
  },
  at: Timestamp,
};
const status = Type.Optional(Type.Integer({ description: "HTTP status, where the provider's API gives one." }));
const payloadBytes = Type.Optional(
  Type.Integer({ minimum: 0, description: "Bytes of the payload as JSON. Absent where pi shows no payload." }),
);
const payloadSha256 = Type.Optional(
  Type.String({ pattern: "^[0-9a-f]{64}$", description: "Hash of these bytes, in hexadecimal digits." }),
);

/** A request leaves for the provider. */
export const RequestPrepared = Type.Object(
  {
    ...place,
    attempt: Type.Integer({ minimum: 1, description: "1, and one more at each retry of the same request by pi." }),
    deliveryIds: Type.Array(DeliveryId, { description: "The pushes in its message list that are on their way." }),
    model: Type.Optional(ModelRef),
    messageCount: Type.Integer({ minimum: 0, description: "Messages in pi's list, the system prompt among them." }),
    payloadBytes,
    payloadSha256,
    messagesBytes: Type.Optional(
      Type.Integer({ minimum: 0, description: "Bytes of the message list as JSON, from the level `messages` on." }),
    ),
    messages: Type.Optional(
      Type.Array(Type.Unknown(), { description: "pi's message list (docs/message-types.md of pi)." }),
    ),
    payload: Type.Optional(
      Type.Object({}, { additionalProperties: true, description: "What the provider gets, in its own API's shape." }),
    ),
    truncated: Type.Optional(
      Type.Boolean({
        description:
          "True when messages or payload were asked for and left out: larger than maxProviderBodyBytes, or not to be had.",
      }),
    ),
  },
  { additionalProperties: false },
);
export type RequestPrepared = Static<typeof RequestPrepared>;

/** The provider has accepted a request. */
export const RequestDelivered = Type.Object(
  {
    ...place,
    status,
    headers: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description: "The response's headers, without secrets: their values are `[redacted]`.",
      }),
    ),
    headersOmitted: Type.Optional(
      Type.Integer({ minimum: 1, description: "How many headers were left out, beyond 64 of them or 16 KiB." }),
    ),
    evidence: Evidence,
    latencyMs: Type.Integer({ minimum: 0, description: "Time from sending the request to this evidence." }),
    payloadBytes,
    payloadSha256,
  },
  {
    additionalProperties: false,
    description: "The payload's facts are here when the request left once more with another payload.",
  },
);
export type RequestDelivered = Static<typeof RequestDelivered>;

/** A request has ended without the provider's acceptance. */
export const RequestFailed = Type.Object(
  {
    ...place,
    status,
    reason: Type.Enum(["failed", "aborted", "unknown"], {
      description:
        "`failed`: a refusal, a connection, an error of the provider. `aborted`: the run was. `unknown`: the child ended first.",
    }),
    error: Type.Optional(Type.String({ description: "Error text of the provider or pi, at most 1 KiB." })),
    willRetry: Type.Optional(Type.Boolean({ description: "Whether pi said that it tries again by itself." })),
  },
  { additionalProperties: false },
);
export type RequestFailed = Static<typeof RequestFailed>;
