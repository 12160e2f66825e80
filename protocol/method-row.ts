import type { TSchema } from "typebox";
import type { Capability } from "./capability.ts";
import type { ErrorName } from "./errors.ts";

/**
 * A path whose `{names}` are params. The other params come from the query, or from a JSON body where the verb has one; the
 * answer is the result alone, or the error as `application/problem+json`.
 */
export interface HttpRoute {
  readonly verb: "GET" | "POST" | "DELETE";
  readonly path: `/v1/${string}`;
  /** It takes only requests that have this name in their query. Another row has the path without it. */
  readonly ifQuery?: string;
}

/** What a param needs. One that is `false` turns something off, and needs nothing. */
export interface ParamNeed {
  readonly param: string;
  /** Default: any. */
  readonly value?: string;
  readonly capability: Capability;
}

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
  /** Where it is found over HTTP, beside JSON-RPC. */
  readonly http?: HttpRoute;
  /** What a token must allow. `any`: whatever it allows. */
  readonly capability: Capability | "any";
  /** It changes nothing, whatever it needs. So do all that need `observe`, and all that need nothing. */
  readonly reads?: true;
  /** What it must allow beside, where a param is given, or has this value. */
  readonly needs?: readonly ParamNeed[];
  /** The first version of the package that had it. */
  readonly since: string;
  /** Errors beyond those that every method can give. */
  readonly errors: readonly ErrorName[];
}

/** Whether a method changes nothing. */
export function isReading({ capability, reads }: MethodRow): boolean {
  return capability === "observe" || capability === "any" || reads === true;
}
