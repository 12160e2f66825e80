import type { MethodName } from "../protocol/methods.ts";
import { retries } from "./retries.ts";

/**
 * What happens to a call whose answer was lost with its connection.
 *
 * - `always`: it is repeated, also at a restarted daemon. It only reads, or the daemon recognises it by an id or a key that
 *   was stored before the call took effect.
 * - `never`: it rejects, and may have taken effect.
 */
export type Repeat = "always" | "never";

/** Whether this version of the library knows a method. */
export function isKnownMethod(method: string): method is MethodName {
  return Object.hasOwn(retries, method);
}

/** The params of a call as they are sent, and whether the call may be repeated. */
export interface Repeatable {
  readonly params: unknown;
  readonly repeat: Repeat;
}

/** Makes a call repeatable if its method allows it: adds an idempotency key if the method takes one and none is given. */
export function repeatable(method: MethodName, params: unknown, newKey: () => string): Repeatable {
  const retry = isKnownMethod(method) ? retries[method] : "never";
  if (retry === "safe") return { params, repeat: "always" };
  if (retry === "never") return { params, repeat: "never" };
  const given: Readonly<Record<string, unknown>> = typeof params === "object" && params !== null ? { ...params } : {};
  if (given[retry] !== undefined) return { params, repeat: "always" };
  // An id that becomes visible to users is theirs to choose.
  if (retry !== "idempotencyKey") return { params, repeat: "never" };
  return { params: { ...given, idempotencyKey: newKey() }, repeat: "always" };
}
