import type { Static } from "typebox";
import { Evidence } from "./delivery.ts";
import { DeliveryId, Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import { providerLevels } from "./provider-level.ts";
import { ModelRef } from "./session.ts";

/** How much a subscriber receives about requests to the provider. */
export const ProviderLevel = Type.Enum(providerLevels, {
  description:
    "Notifications about the session's requests to the model's provider. `summary`: each request and its outcome. `messages`: also pi's message list. `payload`: also the payload. Default: the previous value of this connection, initially off.",
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
const status = Type.Optional(Type.Integer({ description: "HTTP status, if the provider's API has one." }));
const payloadBytes = Type.Optional(
  Type.Integer({ minimum: 0, description: "Bytes of the payload as JSON. Absent if pi does not provide the payload." }),
);
const payloadSha256 = Type.Optional(
  Type.String({ pattern: "^[0-9a-f]{64}$", description: "Hash of these bytes, in hexadecimal digits." }),
);

const part = (what: string) => Type.Optional(Type.Integer({ minimum: 1, description: what }));

/**
 * What pi's message list is made of, in characters (UTF-16 code units) of its texts, without the syntax of JSON. A kind
 * that does not occur is absent. It says which kind fills a request; only the provider knows its tokens.
 */
export const Composition = Type.Object(
  {
    system: part("The system prompt."),
    tools: part("The definitions of the tools: names, descriptions, parameters."),
    user: part("Messages of users."),
    assistant: part("The model's answers."),
    thinking: part("The model's thoughts that its provider shows."),
    toolCalls: part("Names and arguments of the model's calls of tools."),
    toolResults: part("Results of tools."),
    bash: part("Commands that users ran, with their output."),
    summaries: part("Summaries that replace earlier messages or describe another branch."),
    pushes: part("Pushes."),
    custom: part("Other messages of extensions."),
    images: part("Images, as Base64. Providers count them otherwise."),
  },
  { additionalProperties: false },
);
export type Composition = Static<typeof Composition>;

/** A request is sent to the provider. */
export const RequestPrepared = Type.Object(
  {
    ...place,
    attempt: Type.Integer({ minimum: 1, description: "1, plus one for each retry of the same request by pi." }),
    deliveryIds: Type.Array(DeliveryId, { description: "The open deliveries in its message list." }),
    model: Type.Optional(ModelRef),
    messageCount: Type.Integer({ minimum: 0, description: "Messages in pi's list, including the system prompt." }),
    composition: Type.Optional({
      ...Composition,
      description:
        "What pi's message list is made of: characters (UTF-16 code units) of texts, by kind. Absent if the helper is older, or a value has over a million parts.",
    }),
    payloadBytes,
    payloadSha256,
    messagesBytes: Type.Optional(
      Type.Integer({ minimum: 0, description: "Bytes of the message list as JSON, from the level `messages` on." }),
    ),
    messages: Type.Optional(
      Type.Array(Type.Unknown(), { description: "pi's message list (docs/message-types.md of pi)." }),
    ),
    payload: Type.Optional(
      Type.Object(
        {},
        { additionalProperties: true, description: "The payload for the provider, in the format of its API." },
      ),
    ),
    truncated: Type.Optional(
      Type.Boolean({
        description:
          "True if requested messages or the payload were omitted: larger than maxProviderBodyBytes, or unavailable.",
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
      Type.Integer({ minimum: 1, description: "How many headers were omitted, beyond 64 of them or 16 KiB." }),
    ),
    evidence: Evidence,
    latencyMs: Type.Integer({ minimum: 0, description: "Time from sending the request to this evidence." }),
    payloadBytes,
    payloadSha256,
  },
  {
    additionalProperties: false,
    description: "The payload's fields are present if the request was sent again with another payload.",
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
        "`failed`: the provider refused it or failed, or the connection failed. `aborted`: the run was aborted. `unknown`: the child ended first.",
    }),
    error: Type.Optional(Type.String({ description: "Error text of the provider or pi, at most 1 KiB." })),
    willRetry: Type.Optional(Type.Boolean({ description: "Whether pi announced a retry." })),
  },
  { additionalProperties: false },
);
export type RequestFailed = Static<typeof RequestFailed>;
