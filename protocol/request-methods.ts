import type { Static } from "typebox";
import { Evidence } from "./delivery.ts";
import { DeliveryId, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { CostUsage } from "./optimisation/notices.ts";
import { commandErrors, params } from "./params.ts";

/** What the deliveries of a request tell of it. */
const RequestEvidence = Type.Object(
  {
    requestId: Type.String(),
    preparedAt: Timestamp,
    status: Type.Optional(Type.Integer({ description: "HTTP status, if the provider's API has one." })),
    evidence: Type.Optional(Evidence),
    deliveryIds: Type.Array(DeliveryId, { description: "The pushes that it carried." }),
  },
  { additionalProperties: false },
);

/** A request to a provider, as the session's file has it. */
export const MadeRequest = Type.Object(
  {
    entryId: Type.String({ description: "The entry that it has left: the answer, the summary, or pi's record of it." }),
    kind: Type.Enum(["answer", "compaction", "branch_summary", "cache_warm"]),
    startedAt: Type.Optional({ ...Timestamp, description: "When it was made. Only of answers: pi stores no other." }),
    endedAt: { ...Timestamp, description: "When its entry was written." },
    model: Type.Optional(Type.String({ description: "`provider/id`. Absent for summaries: pi does not store it." })),
    stopReason: Type.Optional(Type.String({ description: "pi's reason for the end of the answer." })),
    error: Type.Optional(Type.String({ description: "The first 300 characters of the provider's error." })),
    usage: Type.Optional({ ...CostUsage, description: "Absent if the provider has reported none." }),
    carried: Type.Optional({
      ...RequestEvidence,
      description: "Of a request that carried pushes, as long as their deliveries are kept.",
    }),
  },
  { additionalProperties: false },
);
export type MadeRequest = Static<typeof MadeRequest>;

/** Rows of the method table about requests to providers. */
export const requestMethods = {
  "request/list": {
    summary:
      "The session's newest requests to providers, oldest first, also those that failed and those of abandoned branches. Read from the session's file without starting a pi; a request that is under way is not in it.",
    params: params({
      sessionId: SessionId,
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 200 })),
    }),
    result: Type.Object(
      {
        requests: Type.Array(MadeRequest, { maxItems: 1_000 }),
        isWhole: Type.Boolean({ description: "Whether these are all requests of the session." }),
      },
      { additionalProperties: false },
    ),
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    http: { verb: "GET", path: "/v1/sessions/{sessionId}/requests" },
    errors: commandErrors,
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
