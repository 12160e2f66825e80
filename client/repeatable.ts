import type { MethodName } from "../protocol/methods.ts";

/**
 * What happens to a call whose answer was lost with its connection.
 *
 * - `always`: it is repeated, also at a restarted daemon. It only reads, or the daemon recognises it by an id or a key that
 *   was stored before the call took effect.
 * - `never`: it rejects, and may have taken effect.
 */
export type Repeat = "always" | "never";

type Rule = "read" | "idempotency_key" | "delivery_id" | "never";

const rules: Readonly<Record<MethodName, Rule>> = {
  "daemon/info": "read",
  "daemon/metrics": "read",
  "daemon/ready": "read",
  "session/create": "idempotency_key",
  "session/list": "read",
  "session/get": "read",
  "daemon/subscribe": "never",
  "daemon/unsubscribe": "never",
  // A subscription belongs to one connection: the feeds renew theirs.
  "session/subscribe": "never",
  "session/unsubscribe": "never",
  "session/events": "read",
  "context/inspect": "read",
  "context/export": "read",
  "optimisation/inspect": "read",
  // Another client may have configured the session since.
  "optimisation/configure": "never",
  "cache/report": "read",
  "cost/report": "read",
  "cost/checkpoint": "idempotency_key",
  "cost/startPhase": "idempotency_key",
  "cost/endPhase": "idempotency_key",
  "cost/setBudget": "idempotency_key",
  "pruning/inspect": "read",
  "pruning/stats": "read",
  "pruning/export": "read",
  "pruning/sweep": "idempotency_key",
  "pruning/setMode": "idempotency_key",
  "pruning/compress": "idempotency_key",
  "pruning/decompress": "idempotency_key",
  "pruning/recompress": "idempotency_key",
  // Another client may have configured the session since.
  "pruning/configure": "never",
  "session/prompt": "idempotency_key",
  "session/steer": "idempotency_key",
  "session/followUp": "idempotency_key",
  // Another run may be active by then.
  "session/abort": "never",
  "session/getState": "read",
  "session/getMessages": "read",
  "session/getEntries": "read",
  "session/getTree": "read",
  "session/getForkMessages": "read",
  "session/getLastText": "read",
  "session/getStats": "read",
  "session/getCommands": "read",
  "session/getThinkingLevels": "read",
  "session/export": "read",
  "session/setModel": "idempotency_key",
  "session/cycleModel": "idempotency_key",
  "session/setThinkingLevel": "idempotency_key",
  "session/cycleThinkingLevel": "idempotency_key",
  "session/rename": "idempotency_key",
  "session/compact": "idempotency_key",
  "session/bash": "idempotency_key",
  // Another client may have navigated since.
  "session/navigate": "never",
  "session/setLabel": "idempotency_key",
  "session/listLabels": "read",
  "session/setSteeringMode": "idempotency_key",
  "session/setFollowUpMode": "idempotency_key",
  "session/setAutoCompaction": "idempotency_key",
  "session/setAutoRetry": "idempotency_key",
  "session/abortRetry": "never",
  "session/abortBash": "never",
  "model/list": "read",
  "session/command": "never",
  "session/clearQueue": "never",
  "session/getQueue": "read",
  // The session may have been woken since.
  "session/hibernate": "never",
  "session/close": "never",
  // For an open session the daemon returns that session.
  "session/open": "read",
  "session/fork": "never",
  "session/clone": "never",
  "session/reload": "never",
  "session/delete": "never",
  "session/waitForIdle": "read",
  "prompt/get": "read",
  "prompt/cancel": "never",
  "prompt/wait": "read",
  "prompt/list": "read",
  "delivery/push": "delivery_id",
  "delivery/wait": "read",
  "delivery/get": "read",
  "delivery/list": "read",
  // Its result is the current state, whichever call caused it.
  "delivery/cancel": "delivery_id",
  // If the first call started a run, the second would reject with `wrong_state`.
  "delivery/resend": "never",
  // It describes the client of one connection.
  "daemon/hello": "never",
  // Another client may have the lease by then.
  "session/acquireControl": "never",
  "session/releaseControl": "never",
  "dialog/list": "read",
  "dialog/respond": "idempotency_key",
  "token/list": "read",
  // A second call would act again, or fail because the first one acted.
  "token/create": "never",
  "token/rotate": "never",
  "token/revoke": "never",
  "rpc.discover": "read",
};

/** Whether this version of the library knows a method. */
export function isKnownMethod(method: string): method is MethodName {
  return Object.hasOwn(rules, method);
}

/** The params of a call as they are sent, and whether the call may be repeated. */
export interface Repeatable {
  readonly params: unknown;
  readonly repeat: Repeat;
}

/** Makes a call repeatable if its method allows it: adds an idempotency key if the method takes one and none is given. */
export function repeatable(method: MethodName, params: unknown, newKey: () => string): Repeatable {
  const given: Readonly<Record<string, unknown>> = typeof params === "object" && params !== null ? { ...params } : {};
  switch (rules[method] as Rule | undefined) {
    case "read":
      return { params, repeat: "always" };
    case "delivery_id":
      return { params, repeat: given["deliveryId"] === undefined ? "never" : "always" };
    case "idempotency_key":
      if (given["idempotencyKey"] !== undefined) return { params, repeat: "always" };
      return { params: { ...given, idempotencyKey: newKey() }, repeat: "always" };
    default:
      return { params, repeat: "never" };
  }
}
