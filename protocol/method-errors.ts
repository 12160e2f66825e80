import type { ErrorName } from "./errors.ts";
import { isReading, type MethodRow } from "./method-row.ts";

/** Errors of every method, which the rows therefore do not list. */
const commonErrors = [
  "invalid_params",
  "internal_error",
  "overloaded",
  "cancelled",
  "unauthorized",
  "forbidden",
] as const satisfies readonly ErrorName[];

/** Additional errors of methods that change something. */
const changeErrors = ["not_controller", "store_failed"] as const satisfies readonly ErrorName[];

/** Additional errors of calls with an `idempotencyKey`: of a repeated one whose effect cannot be found out, too. */
function keyErrors({ retry, key, effect }: MethodRow): readonly ErrorName[] {
  if (retry !== "keyed" || key !== undefined) return [];
  return effect === undefined ? ["conflict", "outcome_unknown"] : ["conflict"];
}

/** Additional errors of calls that may start the session's pi. */
const startErrors = [
  "start_failed",
  "link_failed",
  "model_not_found",
  "cwd_invalid",
  "pi_not_found",
  "pi_too_old",
  "shutting_down",
] as const satisfies readonly ErrorName[];

/** Returns all errors of a method: its own, the common ones, and those of its kind. */
export function errorsOf(row: MethodRow): readonly ErrorName[] {
  const isForSession = "sessionId" in ((row.params as { readonly properties?: object }).properties ?? {});
  return [
    ...new Set([
      ...commonErrors,
      ...row.errors,
      ...(isReading(row) ? [] : changeErrors),
      ...keyErrors(row),
      ...(isForSession ? startErrors : []),
    ]),
  ];
}
