import type { ErrorName } from "./errors.ts";
import { isReading, type MethodRow } from "./method-row.ts";

/** Errors that every method can give, and that the rows therefore do not list. */
const commonErrors = [
  "invalid_params",
  "internal_error",
  "overloaded",
  "cancelled",
  "unauthorized",
  "forbidden",
] as const satisfies readonly ErrorName[];

/** What a method that changes something can give in addition. */
const changeErrors = ["not_controller", "store_failed"] as const satisfies readonly ErrorName[];

/** What a call for a session can give in addition where the session's pi must be started for it. */
const startErrors = [
  "start_failed",
  "link_failed",
  "model_not_found",
  "cwd_invalid",
  "pi_not_found",
  "pi_too_old",
  "shutting_down",
] as const satisfies readonly ErrorName[];

/** All errors that a method can give: its own, those of every method, and those of its kind. */
export function errorsOf(row: MethodRow): readonly ErrorName[] {
  const isForSession = "sessionId" in ((row.params as { readonly properties?: object }).properties ?? {});
  return [
    ...new Set([
      ...commonErrors,
      ...row.errors,
      ...(isReading(row) ? [] : changeErrors),
      ...(isForSession ? startErrors : []),
    ]),
  ];
}
