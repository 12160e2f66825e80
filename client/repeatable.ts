import type { MethodName } from "../protocol/methods.ts";

/**
 * What becomes of a call whose answer was lost with its connection.
 *
 * - `always`: it is made again, at another daemon process too. It only reads, or the daemon knows by an id or a key that
 *   it had it before: both are on disk before the effect.
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
  // A subscription is one connection's: the feeds renew theirs by themselves.
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
  // The run that would be aborted could be another one by then.
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
  // Another client may have moved since.
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
  // One that is open already is given again.
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
  // Its result says what the state is, not who has brought it about.
  "delivery/cancel": "delivery_id",
  // Where the first call has begun a run, the second would be a `wrong_state`.
  "delivery/resend": "never",
  // What a connection says of itself ends with it.
  "daemon/hello": "never",
  // By the time it is made again, another client may have the lease.
  "session/acquireControl": "never",
  "session/releaseControl": "never",
  "dialog/list": "read",
  "dialog/respond": "idempotency_key",
  "token/list": "read",
  // A second call would make, or be refused for, what the first has done.
  "token/create": "never",
  "token/rotate": "never",
  "token/revoke": "never",
  "rpc.discover": "read",
};

/** Whether this version of the library knows a method. */
export function isKnownMethod(method: string): method is MethodName {
  return Object.hasOwn(rules, method);
}

/** A call as it is sent, and whether it may be sent again. */
export interface Repeatable {
  readonly params: unknown;
  readonly repeat: Repeat;
}

/** Makes a call repeatable where its method allows it: one that takes an idempotency key and has none is given one. */
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
