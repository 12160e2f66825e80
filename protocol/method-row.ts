import type { TSchema } from "typebox";
import type { Capability } from "./capability.ts";
import type { ErrorName } from "./errors.ts";

/**
 * A path whose `{names}` are params. The other params come from the query, or from a JSON body where the verb has one; the
 * answer is the result alone, or the error as `application/problem+json`.
 */
export interface HttpRoute {
  readonly verb: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: `/${string}`;
  /** It takes only requests that have this name in their query. Another row has the path without it. */
  readonly ifQuery?: string;
  /**
   * The answer is a stream of server-sent events: the result first, then the notifications of this subscription. Of two
   * rows with the same path this one takes the requests that accept `text/event-stream`.
   */
  readonly stream?: true;
  /** Former path, deprecated but still answered. */
  readonly formerPath?: `/${string}`;
}

/** Why a method has no path: it can be called by JSON-RPC alone. */
export interface NoRoute {
  readonly none: string;
}

/** What a param needs. One that is `false` or null turns something off, and needs nothing. */
export interface ParamNeed {
  /** One inside others is named with them: `optimisation.contextFiles.sections[].path`. */
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
  /** HTTP route, or why there is none. */
  readonly http: HttpRoute | NoRoute;
  /**
   * Source of the answer if the session has no pi. `file`: the session's file. `cached`: pi's last answer. Both are
   * `session_asleep` where that is not known, and start no pi. `wake`: a pi that is started. Absent: the method needs
   * no pi.
   */
  readonly asleep?: "file" | "cached" | "wake";
  /** What a token must allow. `any`: whatever it allows. */
  readonly capability: Capability | "any";
  /** Changes nothing, despite its capability. Methods that need `observe` or nothing never change anything. */
  readonly reads?: true;
  /** Additional capabilities for a param, or for a value of it. */
  readonly needs?: readonly ParamNeed[];
  /** The first version of the package that had it. */
  readonly since: string;
  /** Errors beyond those that every method can give. */
  readonly errors: readonly ErrorName[];
}

/** Rows by their methods' names. */
export type MethodTable = Readonly<Record<string, MethodRow>>;

/** Returns the route of a row, if it has one. */
export function routeOf({ http }: MethodRow): HttpRoute | undefined {
  return "path" in http ? http : undefined;
}

/** Returns all routes of a row: its own and the former one. */
export function routesOf(row: MethodRow): readonly (HttpRoute & { readonly isFormer: boolean })[] {
  const route = routeOf(row);
  if (route === undefined) return [];
  const { formerPath } = route;
  const own = { ...route, isFormer: false };
  return formerPath === undefined ? [own] : [own, { ...route, path: formerPath, isFormer: true }];
}

/** Whether a method changes nothing. */
export function isReading({ capability, reads }: MethodRow): boolean {
  return capability === "observe" || capability === "any" || reads === true;
}
