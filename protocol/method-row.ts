import type { TSchema } from "typebox";
import type { ErrorName } from "./errors.ts";

/** One row of the method table. */
export interface MethodRow {
  readonly summary: string;
  readonly params: TSchema;
  readonly result: TSchema;
  /**
   * On which queue calls wait for each other: `session` for those that write to a session's pi,
   * `none` for those that may run at any time.
   */
  readonly scope: "none" | "session";
  /** What a token must allow. */
  readonly capability: "observe" | "prompt" | "admin";
  /** The first version of the package that had it. */
  readonly since: string;
  /** Errors beyond those that every method can give. */
  readonly errors: readonly ErrorName[];
}
