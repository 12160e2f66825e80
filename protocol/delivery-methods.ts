import { Content } from "./content.ts";
import { DeliverAs, Delivery, DeliveryState, WaitUntil } from "./delivery.ts";
import { DeliveryId, SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { childErrors, params } from "./params.ts";

/** Rows of the method table about deliveries. */
export const deliveryMethods = {
  "delivery/push": {
    summary: "Stores a custom message for the agent and returns at once; its delivery is followed by id.",
    params: params({
      sessionId: SessionId,
      customType: Type.String({
        pattern: "^(?!pi-rpcd\\.carrier$)[0-9A-Za-z][0-9A-Za-z._:/-]{0,127}$",
        description: "Message type, which pi stores with the message. `pi-rpcd.carrier` is reserved.",
      }),
      content: Content,
      display: Type.Optional(Type.Boolean({ default: true, description: "Whether pi's own screens show it." })),
      details: Type.Optional(
        Type.Object(
          {},
          {
            additionalProperties: true,
            description:
              "Kept with the message, never sent to the model. Numbers are doubles: one beyond their range is `invalid_params`, further digits are rounded.",
          },
        ),
      ),
      deliverAs: Type.Optional({ ...DeliverAs, default: "steer" }),
      triggerTurn: Type.Optional(
        Type.Boolean({ default: true, description: "Whether an idle agent starts a run for it." }),
      ),
      deliveryId: Type.Optional(DeliveryId),
      onAbort: Type.Optional(
        Type.Enum(["park", "drop"], {
          default: "park",
          description: "Effect of an abort before it is inserted.",
        }),
      ),
      onClearQueue: Type.Optional(
        Type.Enum(["keep", "drop"], {
          default: "keep",
          description: "Effect of `session/clearQueue` before it is inserted.",
        }),
      ),
      expiresAfterMs: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 604_800_000,
          description: "Expires if it is not inserted within this time, in milliseconds. Default: never.",
        }),
      ),
      until: Type.Optional({
        ...WaitUntil,
        description: "Answer only when this state is reached, as `delivery/wait` does. Default: when it is stored.",
      }),
      timeoutMs: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 3_600_000,
          default: 60_000,
          description: "With `until`. 0: the state now.",
        }),
      ),
    }),
    result: Delivery,
    http: { verb: "POST", path: "/v1/sessions/{sessionId}/deliveries" },
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: [
      "session_not_found",
      "session_lost",
      "conflict",
      "too_large",
      "overloaded",
      "deadline_exceeded",
      "cancelled",
    ],
    rate: "pushes",
    subjects: [
      { kind: "session", param: "sessionId" },
      { kind: "delivery", param: "deliveryId", isChosen: true },
    ],
    retry: "keyed",
    key: "deliveryId",
  },
  "delivery/wait": {
    summary: "Waits until a delivery has reached a state (or is parked, or can never reach it) and returns it.",
    params: params({
      deliveryId: DeliveryId,
      until: Type.Optional({ ...WaitUntil, default: "delivered", description: "The state to wait for." }),
      timeoutMs: Type.Optional(
        Type.Integer({ minimum: 0, maximum: 3_600_000, default: 60_000, description: "0: the state now." }),
      ),
    }),
    result: Delivery,
    http: { verb: "GET", path: "/v1/deliveries/{deliveryId}", ifQuery: "until" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["delivery_not_found", "deadline_exceeded", "cancelled"],
    retry: "safe",
  },
  "delivery/get": {
    summary: "One delivery as it is now.",
    params: params({
      deliveryId: DeliveryId,
      content: Type.Optional(Type.Boolean({ default: false, description: "Also what was pushed." })),
    }),
    result: Delivery,
    http: { verb: "GET", path: "/v1/deliveries/{deliveryId}" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["delivery_not_found"],
    retry: "safe",
  },
  "delivery/list": {
    summary: "Deliveries, the newest first, settled ones too for as long as they are kept.",
    params: params({
      sessionId: Type.Optional({ ...SessionId, description: "Only this session's." }),
      states: Type.Optional(
        Type.Array(DeliveryState, { minItems: 1, maxItems: 12, description: "Only those in one of these states." }),
      ),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
      after: Type.Optional({ ...DeliveryId, description: "`next` of the previous page." }),
    }),
    result: Type.Object(
      {
        deliveries: Type.Array(Delivery),
        next: Type.Optional({ ...DeliveryId, description: "Use as `after`, if there may be more." }),
      },
      { additionalProperties: false },
    ),
    http: { verb: "GET", path: "/v1/deliveries" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["delivery_not_found"],
    // A filter: the deliveries of a session that is unknown to the token are an empty list.
    subjects: [{ kind: "delivery", param: "after" }],
    retry: "safe",
  },
  "delivery/cancel": {
    summary: "Withdraws a push that is not in the transcript yet. The result says whether it was withdrawn.",
    params: params({ deliveryId: DeliveryId }),
    result: Type.Object(
      {
        cancelled: Type.Boolean({ description: "False: it was too late in this state." }),
        delivery: Delivery,
      },
      { additionalProperties: false },
    ),
    http: { verb: "POST", path: "/v1/deliveries/{deliveryId}/cancel" },
    scope: "none",
    capability: "prompt",
    since: "0.1.0",
    errors: ["delivery_not_found", "session_file_unusable", "session_closed", "link_failed", "overloaded", "cancelled"],
    // The result is the current state, whichever call caused it.
    retry: "safe",
  },
  "delivery/resend": {
    summary: "Starts a run that carries a parked push. A current run carries it instead.",
    params: params({ deliveryId: DeliveryId }),
    result: Delivery,
    http: { verb: "POST", path: "/v1/deliveries/{deliveryId}/resend" },
    scope: "session",
    capability: "prompt",
    since: "0.1.0",
    errors: ["delivery_not_found", "wrong_state", "session_busy", ...childErrors, "cancelled"],
    rate: "prompts",
    // If the first call started a run, a second would throw `wrong_state`.
    retry: "never",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
